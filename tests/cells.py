"""Functions as notebooks make them."""

import itertools
import linecache

_numbers = itertools.count()


def cell(source, name):
    """Run a cell, whose lines are kept and in no file; give a name of it.

    No other process can import it, so it goes there by cloudpickle and what it holds.
    """
    file = f"<cell {next(_numbers)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    space = {"__name__": "a notebook"}
    exec(compile(source, file, "exec"), space)
    return space[name]
