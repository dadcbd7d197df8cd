"""Every documented form of a card's configs is understood, and others are refused in one line."""

import pytest

from zephon.errors import DatasetError
from zephon.io.storage.card_configs import card_configs


def read(yaml, before="---\n", after="---\n# Title\n"):
    return card_configs("hf://a/b", f"{before}{yaml}{after}")


@pytest.mark.parametrize(
    ("data_files", "wanted"),
    [
        ("data/*.jsonl", {"train": ("data/*.jsonl",)}),
        ("[a.jsonl, ./b//c.jsonl]", {"train": ("a.jsonl", "b/c.jsonl")}),
        (
            "[{split: test, path: a}, {split: train, path: [b, c]}]",
            {"test": ("a",), "train": ("b", "c")},
        ),
        ("{train: a, test: [b]}", {"train": ("a",), "test": ("b",)}),
        ("[{path: a}]", {"train": ("a",)}),
        ("{split: dev, path: a}", {"dev": ("a",)}),
        ("[{split: train, path: a}, {split: train, path: b}]", {"train": ("a", "b")}),
        ("[{split: 2024, path: a}]", {"2024": ("a",)}),
    ],
)
def test_data_files_of_each_form(data_files, wanted):
    found = read(f"configs:\n- config_name: en\n  data_files: {data_files}\n")
    assert found["en"].splits == wanted
    assert not found["en"].default


def test_folders_defaults_and_names():
    found = read(
        "license: mit\nconfigs:\n- config_name: en\n  data_dir: ./data/en/\n  default: true\n"
        "- data_files: a.jsonl\n- config_name: 7\n"
    )
    assert list(found) == ["en", "default", "7"]
    assert found["en"].folder == "data/en"
    assert found["en"].default
    assert found["7"].splits is None


@pytest.mark.parametrize(
    "card",
    [
        None,
        "",
        "# Title\n",
        "---\n---\n",
        "---\nlicense: mit\n---\n",
        "---\nno end\n",
        "---\n- a\n---\n",
    ],
)
def test_a_card_without_configs_has_none(card):
    assert card_configs("hf://a/b", card) == {}


def test_a_mark_and_other_line_ends_do_no_harm():
    found = card_configs("a", "\ufeff---\r\nconfigs:\r\n- config_name: en\r\n---\r\n")
    assert list(found) == ["en"]


@pytest.mark.parametrize(
    ("yaml", "told"),
    [
        ("configs: 7\n", "configs in README.md must be of a form that the hub documents, got 7"),
        ("configs: [x]\n", "a config in README.md"),
        ("configs:\n- config_name: en\n  data_files: 7\n", "data_files of 'en' in README.md"),
        ("configs:\n- config_name: en\n  data_files: []\n", "data_files of 'en'"),
        ("configs:\n- config_name: en\n  data_files: [{split: a}]\n", "data_files of 'en'"),
        ("configs:\n- config_name: en\n  data_dir: [a]\n", "data_dir of 'en'"),
        ("a: [\n", "README.md must begin with YAML, and it is damaged in line"),
    ],
)
def test_other_forms_are_refused(yaml, told):
    with pytest.raises(DatasetError) as raised:
        read(yaml)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)
