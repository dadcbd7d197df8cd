"""How whole rows look after column steps, said once for all rows."""

from __future__ import annotations

from collections.abc import Sequence

from zephon.expressions import ColumnStep, expression
from zephon.planner.physical import Shape


def shape_of(steps: Sequence[ColumnStep]) -> Shape:
    """Join what each step does to a row.

    Fields that no step names stay as they are, known or not, unless a select names all that stay.
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
                names = expression.renamed(step)
                elsewhere = {*gone, *renamed.values()}
                # a computed field takes the place of the one below whose name it had
                moved = {
                    new: renamed.pop(old, old)
                    for old, new in names.items()
                    if old in renamed or old not in elsewhere
                }
                computed = {names.get(name, name): None for name in computed}
                renamed |= moved
            case "drop":
                for name in map(str, step.names):
                    if name in renamed:
                        gone[renamed.pop(name)] = None
                    elif name not in renamed.values():  # else what the row below has is elsewhere
                        gone[name] = None
                    computed.pop(name, None)
            case _:
                pass
    if not below:
        return Shape(below=False, computed=tuple(computed))
    pairs = tuple((old, new) for new, old in renamed.items())
    return Shape(below=True, gone=tuple(gone), renamed=pairs, computed=tuple(computed))
