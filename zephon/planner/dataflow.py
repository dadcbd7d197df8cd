"""What flows between the steps of a plan: which columns are read where, and where whole rows go.

A typed column that a step reads comes from the source; from the frame, where an expression made it;
or from whole rows, once a function made these. Columns have at each step the names that fields have
there, typed ones and those of the frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from zephon.column_steps import renamed
from zephon.io.fields import Column, Field
from zephon.planner.logical import Columns, Fetch, Node
from zephon.planner.names import Names


@dataclass(frozen=True, slots=True)
class Given:
    """What one step is given.

    made: typed columns that must be made before it, of the frame or of whole rows. from_rows: of
    whole rows. rows_after: whole rows leave it. wanted: columns of the frame that a later step
    uses. moved: typed columns whose path means something else after it, each with its new path;
    None: it has none.
    """

    made: tuple[Column, ...]
    from_rows: bool
    rows_after: bool = False
    wanted: frozenset[str] = frozenset()
    moved: tuple[tuple[str, str | None], ...] = ()


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


def flow_of(steps: Sequence[Node], *, of_records: bool = False) -> Flow:
    """Follow columns and rows through steps.

    Args:
        steps: source first, without those on batches.
        of_records: they work on rows that an operator of the user made; the first is no source.
    """
    fields = {} if of_records else {f.name: f for f in steps[0].fields()}
    names, from_rows = Names(fields), of_records
    typed: dict[tuple[str, str, str], Column] = {}
    general: dict[str, Column] = {}
    found: list[Given] = []
    needs: list[set[str]] = []
    known = [names]
    for node in steps:
        made: list[Column] = []
        need: set[str] = set()
        for column in node.reads():
            source = None if from_rows else names.source(column.path)
            if source is not None:
                without = [w for w in map(names.source, column.without) if w is not None]
                _add(typed, replace(column, path=source, without=tuple(without)))
                continue
            made.append(column)
            if not from_rows and (computed := names.computed(column.path)) is not None:
                need.add(computed)
        if isinstance(node, Fetch):
            for name in sorted({name for each in node.predicates for name in each.reads}):
                general[name] = _any(fields[name])
        if isinstance(node, Columns):
            need |= _needs(node) - set(node.token_fields())  # tokenize makes these
            for source in sorted(s for s in map(names.source, need) if s is not None):
                general[source] = _any(fields[source])
            names = names.after(node.steps)
        known.append(names)
        found.append(Given(tuple(made), from_rows))
        needs.append(need)
        from_rows |= node.takes_rows
    paths = [column.path for column in typed.values()]
    found = [
        replace(given, moved=_moved(paths, before, after))
        for given, before, after in zip(found, known, known[1:], strict=False)
    ]
    return Flow(_looking_back(steps, found, needs), tuple(typed.values()), tuple(general.values()))


def _moved(paths: Sequence[str], before: Names, after: Names) -> tuple[tuple[str, str | None], ...]:
    """Say which paths of the source have others after a step than before it."""
    pairs = {before.here(path): after.here(path) for path in paths if before is not after}
    return tuple((old, new) for old, new in pairs.items() if old is not None and old != new)


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
        if node.sees_rows() or (given.made and given.from_rows):
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


def _any(field: Field) -> Column:
    named = "." in field.name and not field.declared
    return Column(path=field.name, kind="any", missing="empty", values=field.type, named=named)


def _add(found: dict[tuple[str, str, str], Column], column: Column) -> None:
    """Note a column once, without all that a step wants it without."""
    key = (column.path, column.kind, column.missing)
    before = found.get(key, column)
    without = tuple(dict.fromkeys((*before.without, *column.without)))
    found[key] = replace(before, without=without)
