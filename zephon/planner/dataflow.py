"""What flows between the steps of a plan: which columns are read where, and where whole rows go.

A typed column that a step reads comes from the source, maybe under the name that it has there; from
the frame, where an expression made it; or from whole rows, once a function made these. The columns
of the frame have at each step the names that fields have there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from zephon.expressions.expression import renamed
from zephon.io.fields import Column, Field
from zephon.planner.logical import Columns, Fetch, Node


@dataclass(frozen=True, slots=True)
class Given:
    """What one step is given.

    columns: typed columns of the source that it reads, by the paths that they have there. made:
    typed columns that must be made before it, of the frame or of whole rows. from_rows: of whole
    rows. rows_after: whole rows leave it. wanted: columns of the frame that a later step uses.
    paths: names in the source of fields that have another name here.
    """

    columns: tuple[Column, ...]
    made: tuple[Column, ...]
    from_rows: bool
    rows_after: bool
    wanted: frozenset[str]
    paths: Mapping[str, str]

    def path(self, field: str) -> str:
        """Return the path under which a field that this step reads stands among the columns."""
        return _mapped(field, self.paths)


@dataclass(frozen=True, slots=True)
class Flow:
    """What the steps of a plan are given, one entry each; and what is read of the source for all.

    columns: typed. frame: of any type, for expressions.
    """

    given: tuple[Given, ...]
    columns: tuple[Column, ...]
    frame: tuple[Column, ...]

    @property
    def rows(self) -> bool:
        """Whether whole rows are read of the source."""
        return self.given[0].rows_after


@dataclass(slots=True)
class _Names:
    """Where fields come from: by name, the source's name; computed: made by expressions."""

    paths: dict[str, str]
    computed: set[str]

    def past(self, node: Columns) -> None:
        """Go past a step."""
        paths, computed = dict(self.paths), set(self.computed)
        moved = _renamed_by(node)
        self.computed -= set(moved.values())
        for old in moved.values():
            self.paths.pop(old or "", None)
        for new, old in moved.items():
            self.paths.pop(new, None)
            self.computed.discard(new)
            if old is None or old in computed:
                self.computed.add(new)
            elif paths.get(old, old) != new:
                self.paths[new] = paths.get(old, old)


def flow_of(steps: Sequence[Node], *, of_records: bool = False) -> Flow:
    """Follow columns and rows through steps.

    Args:
        steps: source first, without those on batches.
        of_records: they work on rows that an operator of the user made; the first is no source.
    """
    fields = {} if of_records else {f.name: f for f in steps[0].fields()}
    names, from_rows = _Names({}, set()), of_records
    typed: dict[tuple[str, str, str], Column] = {}
    general: dict[str, Column] = {}
    found: list[Given] = []
    needs: list[set[str]] = []
    for node in steps:
        here: list[Column] = []
        made: list[Column] = []
        need: set[str] = set()
        for column in node.reads():
            if from_rows or column.path.split(".")[0] in names.computed:
                made.append(column)
                need |= set() if from_rows else {column.path.split(".")[0]}
            else:
                here.append(replace(column, path=_mapped(column.path, names.paths)))
                _add(typed, here[-1])
        if isinstance(node, Fetch):
            for name in sorted({name for each in node.predicates for name in each.reads}):
                general[name] = _any(fields[name])
        if isinstance(node, Columns):
            need |= _needs(node) - set(node.token_fields())  # tokenize makes these
            for name in sorted(need - names.computed):
                source = names.paths.get(name, name)
                general[source] = _any(fields[source])
        found.append(Given(tuple(here), tuple(made), from_rows, False, frozenset(), names.paths))
        needs.append(need)
        if isinstance(node, Columns):
            names = _Names(dict(names.paths), set(names.computed))
            names.past(node)
        from_rows |= node.takes_rows
    return Flow(_looking_back(steps, found, needs), tuple(typed.values()), tuple(general.values()))


def _looking_back(
    steps: Sequence[Node], found: Sequence[Given], needs: Sequence[set[str]]
) -> tuple[Given, ...]:
    """Fill in what depends on later steps."""
    made = next((n for n, node in enumerate(reversed(steps)) if node.takes_rows), len(steps))
    rows = all(node.keeps_payload() for node in steps[len(steps) - made :])
    wanted: set[str] = set()
    filled: list[Given] = []
    for node, given, need in zip(reversed(steps), reversed(found), reversed(needs), strict=True):
        filled.append(replace(given, rows_after=rows, wanted=frozenset(wanted)))
        measure = node.measure()
        if (
            node.takes_rows
            or (measure is not None and measure.of_whole_rows)
            or (given.made and given.from_rows)
        ):
            rows = True
        elif not node.keeps_payload() or (
            isinstance(node, Columns) and any(step.kind == "select" for step in node.steps)
        ):
            rows = False
        if isinstance(node, Columns):
            back = _renamed_by(node)
            before = {back.get(name, name) for name in wanted}
            wanted = {name for name in before if name is not None}
        wanted = wanted | need
    return tuple(reversed(filled))


def _renamed_by(node: Columns) -> dict[str, str | None]:
    """Say, for fields after a step, what each was before it: a name, or None: it is computed."""
    found: dict[str, str | None] = {}
    for step in node.steps:
        match step.kind:
            case "select":
                found = {each.name: None for each in step.expressions}
            case "with_columns":
                found |= {each.name: None for each in step.expressions}
            case "rename":
                moved = {new: found.pop(old, old) for old, new in renamed(step).items()}
                found |= moved
            case _:
                pass
    return found


def _needs(node: Columns) -> set[str]:
    """List the fields before a step that its expressions use."""
    found: set[str] = set()
    before: dict[str, str | None] = {}
    for number, step in enumerate(node.steps):
        for name in (name for each in step.expressions for name in each.reads):
            old = before.get(name, name)
            found |= set() if old is None else {old}
        before = _renamed_by(replace(node, steps=node.steps[: number + 1]))
    return found


def _mapped(path: str, paths: Mapping[str, str]) -> str:
    first, dot, rest = path.partition(".")
    return f"{paths.get(first, first)}{dot}{rest}"


def _any(field: Field) -> Column:
    return Column(path=field.name, kind="any", missing="empty", values=field.type)


def _add(found: dict[tuple[str, str, str], Column], column: Column) -> None:
    """Note a column once, without all that a step wants it without."""
    key = (column.path, column.kind, column.missing)
    before = found.get(key, column)
    without = tuple(dict.fromkeys((*before.without, *column.without)))
    found[key] = replace(before, without=without)
