"""What names mean after column steps: a field of the source, a computed one, or nothing."""

from __future__ import annotations

from collections.abc import Iterable

from zephon.column_steps import ColumnStep, renamed


class Names:
    """What a path means here; at first, every path is one of the source.

    A path is a name, or names joined by dots: a field inside the objects of another. A field whose
    own name has dots goes first.
    """

    def __init__(self, fields: Iterable[str]) -> None:
        """Take the names of the source's fields, as far as they are known."""
        self._fields = frozenset(fields)
        self._paths: dict[str, str] = {}  # of renamed fields: the name in the source by that here
        self._computed: frozenset[str] = frozenset()
        self._gone: frozenset[str] = frozenset()
        self._others = True  # names that no step mentioned are those of the source

    def after(self, steps: Iterable[ColumnStep]) -> Names:
        """Return what names mean after some steps."""
        found = Names(self._fields)
        found._paths, found._others = dict(self._paths), self._others
        found._computed, found._gone = self._computed, self._gone
        for step in steps:
            found._past(step)
        return found

    def computed(self, path: str) -> str | None:
        """Name the computed field that a path leads to; None: it is not computed."""
        name = self._nearest(path)
        return name if name in self._computed else None

    def source(self, path: str) -> str | None:
        """Give the path in the source; None: it is computed, or it was dropped or renamed."""
        name = self._nearest(path)
        if name in self._computed or name in self._gone:
            return None
        if name in self._paths:
            return self._paths[name] + path[len(name) :]
        return path if self._others else None

    def here(self, source: str) -> str | None:
        """Give the path here of one in the source; None: none leads there."""
        head = source.partition(".")[0]
        names = {name: old for name, old in self._paths.items() if old in (source, head)}
        paths = [name + source[len(old) :] for name, old in names.items()]
        return next((path for path in (*paths, source) if self.source(path) == source), None)

    def is_gone(self, path: str) -> bool:
        """Whether no row has the field, whatever the source has."""
        return self.computed(path) is None and self.source(path) is None

    def _nearest(self, path: str) -> str:
        """Give the part of a path that is a name."""
        changed = {*self._computed, *self._gone, *self._paths}
        return path if path in changed or path in self._fields else path.partition(".")[0]

    def _past(self, step: ColumnStep) -> None:
        made = {each.name for each in step.expressions}
        match step.kind:
            case "select":
                self._paths, self._computed = {}, frozenset(made)
                self._gone, self._others = frozenset(), False
            case "with_columns":
                self._forget(made)
                self._computed |= made
            case "drop":
                names = set(map(str, step.names))
                self._forget(names)
                self._gone |= names
            case "rename":
                self._rename(renamed(step))
            case _:
                pass

    def _rename(self, moved: dict[str, str]) -> None:
        paths, computed = dict(self._paths), self._computed
        self._forget({*moved, *moved.values()})
        self._gone |= moved.keys() - set(moved.values())
        for old, new in moved.items():
            if old in computed:
                self._computed |= {new}
            else:
                self._paths[new] = paths.get(old, old)

    def _forget(self, names: set[str]) -> None:
        self._computed -= names
        self._gone -= names
        for name in names:
            self._paths.pop(name, None)
