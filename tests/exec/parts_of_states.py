"""The parts of a saved state, whatever it is of, and the state with one of them changed."""

import copy


def paths(value, path=()):
    """List the paths of all parts, leaves and inner ones; not within what an operator wrote."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, part in items:
        if "verbatim" not in path:
            yield from paths(part, (*path, key))


def part_at(state, path):
    for key in path:
        state = state[key]
    return state


def with_part(state, path, value):
    changed = copy.deepcopy(state)
    part_at(changed, path[:-1])[path[-1]] = value
    return changed
