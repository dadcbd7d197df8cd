"""What all tests share: a small tokenizer, and caches that stay out of the user's home."""

import gc

import pytest
from hypothesis import settings

settings.register_profile("zephon", deadline=None)  # a busy machine is no failure
settings.load_profile("zephon")


def pytest_addoption(parser):
    parser.addoption("--kills", type=int, default=10, help="processes that are killed, in all")
    parser.addoption("--resizes", type=int, default=2, help="starts of ranks, in all")
    parser.addoption(
        "--fuzz",
        type=float,
        default=20.0,
        help="seconds that files of each format are damaged at random and read",
    )
    parser.addoption(
        "--programs",
        type=float,
        default=0.0,
        help="seconds that each kind of programs of calls is tried, beside the few of `make test`",
    )


def pytest_collection_finish():
    """Let no search for garbage walk over ten thousand collected tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _caches(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("ZEPHON_TOKENIZER_CACHE_DIR", str(tmp_path_factory.mktemp("tokenizer-cache")))
    patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))  # spill, catalogues: in ~/.cache
    patch.delenv("ZEPHON_CATALOG_DIR", raising=False)
    yield
    patch.undo()


@pytest.fixture(scope="session")
def tokenizer_file(tmp_path_factory):
    """Train a byte-level BPE of 500 tokens with BOS, EOS and padding ids."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=["<pad>", "<bos>", "<eos>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    words = ["ash birch Cedar d'oak elm! fir größe 木 hazel the tree and the wood"] * 50
    tokenizer.train_from_iterator(words, trainer)
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        '{"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>"}'
    )
    return str(folder)
