"""One tokenizer for many pipelines at once; exactly one mark at either end of a document."""

import threading

from tests.written import dataset, pipeline, texts_to_tokens
from zephon import Dataset, InMemoryShard

EOS = 2


def test_one_tokenizer_object_may_serve_many_pipelines_at_once(tokenizer_file):
    """Truncation set on a shared object would change what the others get."""
    from tokenizers import Tokenizer

    shared = Tokenizer.from_file(f"{tokenizer_file}/tokenizer.json")
    encoded = texts_to_tokens(tokenizer_file)
    texts = [f"the tree and the wood {i} größe" for i in range(300)]
    words = Dataset.from_dict("words", {0: InMemoryShard([{"text": text} for text in texts])})
    found, errors = {}, []

    def work(max_length):
        try:
            pipe = pipeline(words).tokenize(
                tokenizer=shared,
                field="text",
                special_tokens="none",
                truncation=True,
                max_length=max_length,
            )
            pipe.options(runner="threads")
            found[max_length] = [record.payload["input_ids"] for record in pipe]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    for max_length in range(1, 9):
        assert found[max_length] == [encoded(text)[:max_length] for text in texts]
    assert shared.encode("the tree and the wood", add_special_tokens=False).ids == encoded(
        "the tree and the wood"
    )
    assert shared.truncation is None


def test_there_is_exactly_one_bos_and_one_eos(tmp_path, tokenizer_file):
    texts = ["the tree", "", "größe"]
    pipe = pipeline(dataset("jsonl", tmp_path, [{"text": text} for text in texts])).tokenize(
        tokenizer_id=tokenizer_file, field="text"
    )
    for record in pipe:
        tokens = record.payload["input_ids"]
        assert (tokens[0], tokens[-1]) == (1, EOS)
        assert tokens.count(1) == tokens.count(EOS) == 1
