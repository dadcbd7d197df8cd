"""Names of functions and classes that are the same whether their file is run or imported."""

from __future__ import annotations

import os
import sys
from typing import Any

_RUN = ("__main__", "__mp_main__")  # the second where multiprocessing imports the first again


def qualified_name(thing: Any) -> str:
    """Name a function, a class or an object that is called: its module, and its name there.

    What stands in the script that runs is named as if the script was imported: by the script's
    name, or by that of the module that ``python -m`` runs. In a notebook it is in ``__main__``.

    >>> qualified_name(len), qualified_name(os.path.basename)
    ('builtins.len', 'posixpath.basename')
    """
    name = getattr(thing, "__qualname__", None) or type(thing).__qualname__
    module = getattr(thing, "__module__", None)
    return f"{_imported(thing) if module in _RUN else module}.{name}"


def _imported(thing: Any) -> str:
    main = sys.modules["__main__"]
    own = getattr(main, "__file__", None)
    file = getattr(getattr(thing, "__code__", None), "co_filename", own)
    if own is None or file is None or not (file.endswith(".py") and os.path.isfile(file)):
        return "__main__"  # nothing can import it
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.origin is not None and _same(spec.origin, file):
        return spec.name
    return os.path.splitext(os.path.basename(file))[0]


def _same(one: str, other: str) -> bool:
    return os.path.exists(one) and os.path.samefile(one, other)
