"""Names of files decide their split in the documented order of rules."""

import pytest

from zephon.io.storage.split_names import splits_by_name


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["a.jsonl"], {"train": ["a.jsonl"]}),
        (["x/a.jsonl", "y/b.jsonl"], {"train": ["x/a.jsonl", "y/b.jsonl"]}),
        (
            ["train.jsonl", "test.jsonl", "validation.jsonl"],
            {
                "train": ["train.jsonl"],
                "test": ["test.jsonl"],
                "validation": ["validation.jsonl"],
            },
        ),
        (["my_valid-1.jsonl"], {"validation": ["my_valid-1.jsonl"]}),
        (["dev.jsonl", "val2.jsonl"], {"validation": ["dev.jsonl", "val2.jsonl"]}),
        (["eval.jsonl"], {"test": ["eval.jsonl"]}),
        (["training_3.jsonl"], {"train": ["training_3.jsonl"]}),
        # The word has to stand alone.
        (["testfile.jsonl"], {"train": ["testfile.jsonl"]}),
        # A folder goes before the names of files.
        (
            ["train/test.jsonl", "test/a.jsonl"],
            {"train": ["train/test.jsonl"], "test": ["test/a.jsonl"]},
        ),
        (["en/my-test-1/a.jsonl"], {"test": ["en/my-test-1/a.jsonl"]}),
        # Numbered files name any split, and go before all else.
        (
            [
                "data/train-00000-of-00002.parquet",
                "data/train-00001-of-00002.parquet",
                "data/random_1-00000-of-00001-abc.parquet",
                "data/other.parquet",
                "test/a.parquet",
            ],
            {
                "train": [
                    "data/train-00000-of-00002.parquet",
                    "data/train-00001-of-00002.parquet",
                ],
                "random_1": ["data/random_1-00000-of-00001-abc.parquet"],
            },
        ),
        # What has no split's name is of none, where others have one.
        (["train.jsonl", "readme.jsonl"], {"train": ["train.jsonl"]}),
        ([], {}),
    ],
)
def test_the_first_rule_that_fits_decides(names, wanted):
    assert splits_by_name(names) == wanted
