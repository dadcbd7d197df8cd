"""The command line: what it lists, what it refuses, what it returns."""

from __future__ import annotations

import argparse
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from zephon import __version__, cli
from zephon.errors import DatasetError


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["--help"])
    shown = " ".join(capsys.readouterr().out.split())  # long lines are folded
    assert end.value.code == 0
    assert all(command.name in shown and command.summary in shown for command in cli.COMMANDS)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"zephon {__version__}\n"


@pytest.mark.parametrize("words", [[], ["demmo"], ["demo", "--nonsense"]])
def test_a_wrong_command_line_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(words)
    assert end.value.code == 2
    assert "usage: zephon" in capsys.readouterr().err


@pytest.mark.parametrize("error", [DatasetError("dataset 'a': nothing there"), KeyboardInterrupt()])
def test_errors_become_exit_codes(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(arguments: argparse.Namespace) -> int:
        raise error

    command = cli.Command("fail", "fails", lambda parser: None, fail)
    monkeypatch.setattr(cli, "COMMANDS", (command,))
    code = cli.main(["fail"])
    shown = capsys.readouterr().err
    if isinstance(error, KeyboardInterrupt):
        assert (code, shown) == (130, "")
    else:
        assert (code, shown) == (1, "zephon fail: dataset 'a': nothing there\n")


def test_a_reader_that_stops_reading_is_no_error() -> None:
    program = "import sys; from zephon.cli import main; sys.exit(main())"
    words = (sys.executable, "-u", "-c", program, "demo", "--documents", "100", "--batches", "1")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        complaints = child.stderr.read()
        assert child.wait(timeout=60) != 0
    assert complaints == b""


def test_the_program_is_installed() -> None:
    (program,) = entry_points(group="console_scripts", name="zephon")
    assert program.load() is cli.main
