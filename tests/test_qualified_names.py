"""What stands in a script has one name, whether the script is run or imported."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from zephon.qualified_names import qualified_name

ROOT = Path(__file__).parents[1]

SCRIPT = """
import json

from zephon.exec.function_identity import identity_of
from zephon.qualified_names import qualified_name
from base import Base


def keep(row):
    return row


class Keep(Base):
    by = 3

    def __call__(self, row):
        return row


def names():
    return [qualified_name(keep), qualified_name(Keep), identity_of(keep), identity_of(Keep())]


if __name__ == "__main__":
    print(json.dumps(names()))
"""
BASE = "class Base:\n    def more(self):\n        return 1\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    at = tmp_path_factory.mktemp("scripts")
    (at / "pack").mkdir()
    (at / "pack" / "__init__.py").touch()
    for place, base in ((at, "base"), (at / "pack", "pack.base")):
        (place / "base.py").write_text(BASE)
        (place / "train.py").write_text(SCRIPT.replace("from base", f"from {base}"))
    return at


def names(folder, *words):
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return json.loads(done.stdout)


def imported(module):
    return ("-c", f"import json, {module} as m; print(json.dumps(m.names()))")


def test_a_script_that_is_run_and_imported(folder):
    found = names(folder, "train.py")
    assert found[:2] == ["train.keep", "train.Keep"]
    assert found == names(folder, *imported("train"))
    assert found == names(folder, str(folder / "train.py"))


def test_a_module_that_is_run_and_imported(folder):
    """Classes of its package are parts of its own, and of what is described, in both."""
    found = names(folder, "-m", "pack.train")
    assert found[:2] == ["pack.train.keep", "pack.train.Keep"]
    assert "more" in found[3]["methods"]
    assert found == names(folder, *imported("pack.train"))


def test_what_is_typed_in_has_no_other_name(folder):
    typed = (
        "from zephon.qualified_names import qualified_name as q; import json; "
        "print(json.dumps([q(lambda: 1), q(type('Own', (), {'__module__': '__main__'}))]))"
    )
    assert names(folder, "-c", typed) == ["__main__.<lambda>", "__main__.Own"]


def test_everything_else_has_its_own_name():
    assert qualified_name(names) == f"{__name__}.names"
    assert qualified_name(Path) == "pathlib.Path"
    assert qualified_name(Path("x")) == "pathlib.PosixPath"
