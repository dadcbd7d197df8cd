"""Facts about the layout that no type checker sees.

What a package's face holds, how long files are, where settings of speed may appear, and what
importing Zephon loads.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "zephon").rglob("*.py"))
OURS = [*SOURCES, *sorted((ROOT / "benchmarks").rglob("*.py"))]
PACKAGES = [path for path in SOURCES if path.name == "__init__.py"]

MOST_LINES = 250
# a file may be longer up to here if its first lines give the reason
LONGEST_WITH_A_REASON = 400

VAGUE_NAMES = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "tools"}

# what only a step, or a call that asks for it, may load
LATE = (
    "awkward",
    "gigatoken",
    "huggingface_hub",
    "jinja2",
    "polars",
    "pyarrow.compute",
    "tokenizers",
    "torch",
    "transformers",
    "transformers",
    "zephon.exec.engine",
    "zephon.expressions",
    "zephon.planner.compiler",
    "zephon.planner.physical",
    "zephon.running",
    "zephon.validation",
)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", OURS, ids=name)
def test_a_file_says_what_it_is_about(path: Path) -> None:
    docstring = ast.get_docstring(tree_of(path)) or ""
    first = docstring.split("\n\n")[0]
    assert first.rstrip().endswith((".", "?", ":")), f"{name(path)} does not start with a sentence"


@pytest.mark.parametrize("path", PACKAGES, ids=name)
def test_the_face_of_a_package_hands_names_on(path: Path) -> None:
    """Docstring, imports, at most one table; no function, class or work at import."""
    _docstring, *rest = tree_of(path).body
    tables = []
    for node in rest:
        match node:
            case ast.Import() | ast.ImportFrom():
                pass
            case ast.Assign(targets=[ast.Name(id="__all__" | "__version__")]):
                pass
            case ast.Assign(value=ast.Subscript()):
                pass  # the type of the table's values
            case ast.Assign() | ast.AnnAssign():
                tables.append(node)
            case _:
                pytest.fail(f"{name(path)} line {node.lineno}: {type(node).__name__}")
    assert len(tables) <= 1, f"{name(path)} holds {len(tables)} tables"


@pytest.mark.parametrize("path", OURS, ids=name)
def test_no_file_is_a_drawer_for_anything(path: Path) -> None:
    assert VAGUE_NAMES.isdisjoint(path.stem.split("_")), f"{name(path)}: name what is inside"


@pytest.mark.parametrize("path", OURS, ids=name)
def test_files_stay_short(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    if lines > MOST_LINES:
        limit = LONGEST_WITH_A_REASON
        assert lines <= limit, f"{name(path)} has {lines} lines, at most {limit} are allowed"


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_only_seeds_makes_random_numbers(path: Path) -> None:
    if path.name != "seeds.py":
        found = [
            node.lineno
            for node in ast.walk(tree_of(path))
            if isinstance(node, ast.Attribute) and ast.unparse(node).endswith("np.random")
        ]
        assert not found, f"{name(path)} lines {found}: ask zephon.seeds"


WHAT_FOLDERS = ("operators", "policies", "tokenizers")
WHAT_FILES = ("assemble.py", "rows.py", "buffers.py", "collate.py", "types.py")


@pytest.mark.parametrize(
    "path",
    [p for p in SOURCES if p.parent.name in WHAT_FOLDERS or p.name in WHAT_FILES],
    ids=name,
)
@pytest.mark.parametrize("setting", ["parallelism", "placement", "prefetch", "runner"])
def test_settings_of_how_never_meet_settings_of_what(path: Path, setting: str) -> None:
    """``parallelism`` enters no operator, no policy, no buffer: so it cannot change a byte."""
    words = {
        word
        for node in ast.walk(tree_of(path))
        for word in (
            getattr(node, "id", None),
            getattr(node, "attr", None),
            getattr(node, "arg", None),
        )
        if isinstance(word, str)
    }
    assert setting not in words, f"{name(path)} knows {setting}"


def test_importing_zephon_loads_no_heavy_library() -> None:
    program = f"import sys, zephon; print(*[m for m in {LATE!r} if m in sys.modules])"
    done = subprocess.run(
        (sys.executable, "-c", program), capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == []


def test_the_packages_ship_their_types() -> None:
    assert (ROOT / "zephon" / "py.typed").exists()
