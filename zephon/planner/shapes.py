"""How whole rows look after column steps, said once for all rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from zephon import column_steps
from zephon.column_steps import ColumnStep
from zephon.planner.physical import Shape


def shape_of(steps: Sequence[ColumnStep]) -> Shape:
    """Join what each step does to a row.

    Fields that no step names stay as they are, known or not, unless a select names all that stay.
    One that was renamed onto does not come back once the name is free again.
    """
    below = True
    gone: dict[str, None] = {}
    renamed: dict[str, str] = {}  # old names by the new ones
    computed: dict[str, None] = {}
    for step in steps:
        match step.kind:
            case "select":
                below, gone, renamed = False, {}, {}
                computed = {each.name: None for each in step.expressions}
            case "with_columns":
                computed |= {each.name: None for each in step.expressions}
            case "rename":
                names, before = column_steps.renamed(step), dict(renamed)
                elsewhere = {*gone, *renamed.values()}
                # a computed field takes the place of the one below whose name it had
                moved = {
                    new: renamed.pop(old, old)
                    for old, new in names.items()
                    if old in renamed or old not in elsewhere
                }
                computed = {names.get(name, name): None for name in computed}
                hidden = before.keys() - renamed.keys()
                renamed |= moved
                gone |= _not_elsewhere(hidden - renamed.keys(), renamed)
            case "drop":
                for name in map(str, step.names):
                    if name in renamed:
                        gone[renamed.pop(name)] = None
                    gone |= _not_elsewhere([name], renamed)
                    computed.pop(name, None)
            case _:
                pass
    if not below:
        return Shape(below=False, computed=tuple(computed))
    pairs = tuple((old, new) for new, old in renamed.items())
    return Shape(below=True, gone=tuple(gone), renamed=pairs, computed=tuple(computed))


def _not_elsewhere(names: Iterable[str], renamed: Mapping[str, str]) -> dict[str, None]:
    """Leave out those names whose fields of the row below have others now."""
    return {name: None for name in sorted(names) if name not in renamed.values()}
