"""All filters that a template reaches: Jinja's, and ``tojson`` as transformers has it.

Those that cost anything get the context, so none of them is computed when a template is compiled.
What gives another text each time, or takes unforeseeable time for no use in a chat, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2.filters import FILTERS as DEFAULT_FILTERS
from jinja2.runtime import Context
from jinja2.utils import pass_context

from zephon.exec.chat.sandbox.budget import TemplateFault
from zephon.exec.chat.sandbox.guarded_calls import Filter, guard_of
from zephon.exec.chat.sandbox.list_filters import LIST_FILTERS
from zephon.exec.chat.sandbox.text_filters import TEXT_FILTERS
from zephon.exec.chat.sandbox.weighed_tree import SPREAD

_QUICK = ("abs", "count", "d", "default", "first", "last", "length")
_TIME = "its time is not foreseeable"


def _refused(name: str, why: str) -> Filter:
    @pass_context
    def guarded(context: Context, *args: Any, **kwargs: Any) -> Any:
        raise TemplateFault(f"the filter {name!r} is not for chat templates: {why}")

    return guarded


@pass_context
def _spread(context: Context, values: Any) -> Any:
    """Count what ``*values`` and ``**values`` hand to a call."""
    if isinstance(values, Mapping):
        guard_of(context).make(8 * len(values))
        return values
    return guard_of(context).items(values)


FILTERS: dict[str, Filter] = {
    **{name: DEFAULT_FILTERS[name] for name in _QUICK},
    **TEXT_FILTERS,
    **LIST_FILTERS,
    **{name: _refused(name, _TIME) for name in ("pprint", "striptags", "urlize", "wordwrap")},
    "random": _refused("random", "it gives another value each time"),
    "xmlattr": _refused("xmlattr", "it writes HTML"),
    SPREAD: _spread,
}
