"""Groups of mixture components whose documents may share a packed row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from zephon.errors import PlanError


class DomainGroups:
    """Names groups of components, for ``pack_flat(homogeneity="group", groups=...)``.

    Args:
        groups: by group, the names of its components; at least one, none in two groups.

    Raises:
        PlanError: a group is empty, names a component twice, or shares one with another group; or
            its members are one string.

    >>> DomainGroups({"code": ["python", "rust"]}).members
    (('code', ('python', 'rust')),)
    """

    __slots__ = ("members",)

    def __init__(self, groups: Mapping[str, Iterable[str]]) -> None:
        if not isinstance(groups, Mapping) or not groups:
            raise PlanError(
                f"DomainGroups: groups must be a dict from group to names, with one at least, got "
                f"{groups!r}"
            )
        self.members = tuple((str(group), _names(group, names)) for group, names in groups.items())
        owner: dict[str, str] = {}
        for group, names in self.members:
            for name in names:
                if name in owner:
                    where = "twice" if owner[name] == group else f"and in group {owner[name]!r}"
                    raise PlanError(
                        f"DomainGroups: component {name!r} is in group {group!r} {where}; "
                        "name each component once"
                    )
                owner[name] = group

    def __repr__(self) -> str:
        return f"DomainGroups({ {group: list(names) for group, names in self.members} })"

    def __eq__(self, other: object) -> bool:
        return self.members == other.members if isinstance(other, DomainGroups) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.members)


def _names(group: object, names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise PlanError(
            f"DomainGroups: the members of group {group!r} must be a list of names, got {names!r}; "
            f"write [{names!r}]"
        )
    found = tuple(names)
    if not found or not all(isinstance(name, str) for name in found):
        raise PlanError(
            f"DomainGroups: group {group!r} must name one component at least, by strings, got "
            f"{found!r}"
        )
    # A set goes in another order in each process, and the order is in the fingerprint.
    return tuple(sorted(found)) if isinstance(names, Set) else found
