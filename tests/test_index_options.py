import re
import shlex
import warnings

import pytest

from zephon import cli
from zephon.io import Dataset


def test_an_index_of_files_with_options_and_the_command_that_makes_it(tmp_path, capsys):
    folder = tmp_path / "my files"
    folder.mkdir()
    (folder / "a.csv").write_text("1;2\n3;4\n")
    options = {"header": False, "delimiter": ";"}
    assert cli.main(["index", str(folder)]) == 0
    with pytest.warns(RuntimeWarning, match="index.json' is not used") as told:
        scanned = Dataset.from_path("d", folder, format_options=options)
    command = re.search("`zephon (index .*)`", str(told[0].message))[1]
    for words in (shlex.split(command), [*shlex.split(command), "--catalog"]):
        assert cli.main(words) == 0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            dataset = Dataset.from_path("d", folder, format_options=options)
        assert (dataset.total(), scanned.total()) == (2, 2)
        assert dataset.shards.listed_by.file in ("index.json", "_catalog.arrow")
    with pytest.raises(SystemExit):
        cli.main(["index", str(folder), "--options", "[1]"])
    assert "must be a JSON object of options by name, got '[1]'" in capsys.readouterr().err


def test_a_disk_that_cannot_be_written_to_is_one_line(tmp_path, capsys):
    (tmp_path / "a.jsonl").write_text("{}\n")
    output = tmp_path / ("x" * 250)  # with what is put around it while it is written, too long
    assert cli.main(["index", str(tmp_path), "--output", str(output)]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("zephon index: [Errno ")
