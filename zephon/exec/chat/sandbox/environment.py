"""The Jinja environment of chat templates: immutable, counted, and with what transformers gives.

What a template reaches is what ``methods.py``, ``filters.py`` and ``functions.py`` list; every
call passes here. This module loads Jinja; import it late.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from types import BuiltinMethodType, MethodType
from typing import Any

from jinja2 import Template, nodes
from jinja2.exceptions import SecurityError
from jinja2.runtime import BlockReference, Context, LoopContext, Macro, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Joiner, Namespace

from zephon.errors import PlanError
from zephon.exec.chat.sandbox.budget import DEEPEST_CALL, TemplateFault
from zephon.exec.chat.sandbox.conditions import TESTS
from zephon.exec.chat.sandbox.extents import key
from zephon.exec.chat.sandbox.filters import FILTERS
from zephon.exec.chat.sandbox.functions import FUNCTIONS, Function
from zephon.exec.chat.sandbox.generated_code import OF_DICT, GuardedCode
from zephon.exec.chat.sandbox.generation import BEGIN, Generation, joined
from zephon.exec.chat.sandbox.guard import Guard
from zephon.exec.chat.sandbox.methods import ATTRIBUTES, METHODS
from zephon.exec.chat.sandbox.turns import mark_turns
from zephon.exec.chat.sandbox.weighed_tree import prepare

_PROBE = """
{%- macro m(a) %}{{ a ~ a }}{% endmacro %}
{%- for x in y if x %}{{ m(x.a[1:] % x) + x.f(x) }}{% endfor %}
{{- x * y ** z - 1 if x < y or x in y else x - y }}{{ x }}{{ {x: 1} }}"""
_COUNTED = (
    *("charge(", "charged()", "concatenated(", "sliced(", "modulo(", "wrote(", "multiplied("),
    *("power(", "compared(", "within(", "subtracted(", "write(", "key(", "concat = guard.joined"),
    *("environment.call(context", "environment.invoke(context", "environment.getattr("),
)
_names_in = object.__getattribute__  # a namespace has its own
_DEEP = (Macro, LoopContext, BlockReference)
_NOTHING = object()


class ChatContext(Context):
    """The variables of one rendering, and its guard."""

    guard: Guard

    def derived(self, locals: dict[str, Any] | None = None) -> Context:  # noqa: A002
        """Make the context of a scoped block; the guard stays."""
        made = super().derived(locals)
        made.guard = self.guard  # type: ignore[attr-defined]
        return made


class ChatEnvironment(ImmutableSandboxedEnvironment):
    """Compiles templates whose every rendering asks a guard."""

    code_generator_class = GuardedCode
    context_class = ChatContext
    intercepted_binops = frozenset({"+", "-", "*", "%", "**"})  # so none is done at compile time
    joined = staticmethod(joined)
    key = staticmethod(key)

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.loopcontrols", Generation],
            optimized=False,  # it visits a chain of n operators n * n times, and folds little
        )
        self.filters = dict(FILTERS)
        self.tests = dict(TESTS)
        self.globals = dict(FUNCTIONS)

        code = str(self.compile(self.parse(_PROBE), raw=True))
        lost = [call for call in _COUNTED if call not in code]
        if lost:
            raise PlanError(
                f"chat templates: jinja2 {version('jinja2')} writes code in another way than "
                f"known, so nothing would count {', '.join(lost)}; install jinja2 3.1"
            )

    def compiled(self, text: str) -> tuple[Template, bool]:
        """Compile a template, and say whether it has generation tags.

        Raises:
            TemplateSyntaxError: it is none.
        """
        tree = self.parse(text)
        internal = tree.find_all(nodes.InternalName)
        marks = any(each.name.startswith(BEGIN) for each in internal)
        code = self.compile(tree)
        made = self.template_class.from_code(self, code, self.make_globals(None), None)
        return made, marks

    def compiled_by_turns(self, text: str) -> tuple[Template, int] | None:
        """Compile a template that ``compiled`` took, with marks where each message begins.

        Returns:
            It, and how many messages there must be; None if it is none of that kind.
        """
        tree = self.parse(text)
        least = mark_turns(tree)
        if least is None:
            return None
        code = self.compile(tree)
        return self.template_class.from_code(self, code, self.make_globals(None), None), least

    def _generate(
        self,
        source: nodes.Template,
        name: str | None,
        filename: str | None,
        defer_init: bool = False,
    ) -> str:
        prepare(source, name)
        return super()._generate(source, name, filename, defer_init)

    def context(self, variables: Mapping[str, Any], blocks: Mapping[str, Any]) -> ChatContext:
        """Make the context of one rendering; the values are not copied, nor ever changed."""
        parent = {**self.globals, **variables}
        made = ChatContext(self, parent, None, blocks)  # type: ignore[arg-type]
        made.guard = Guard(self, parent)
        return made

    def getattr(self, obj: Any, attribute: str) -> Any:
        """``a.b``: the attribute if there is one, else the item."""
        kind = type(obj)
        if kind is dict and attribute not in OF_DICT:
            return obj[attribute] if attribute in obj else self._absent(obj, attribute)
        if kind is Namespace:
            named = _names_in(obj, "_Namespace__attrs")
            if attribute in named and not attribute.startswith("_"):
                return named[attribute]
        allowed = ATTRIBUTES.get(kind)
        if allowed is not None and attribute in allowed:
            return getattr(obj, attribute)
        found = self.attribute(obj, attribute)
        if found is not _NOTHING:
            return found
        try:
            return obj[attribute]
        except (TypeError, LookupError):
            return self._absent(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """``a[b]``: the item if there is one, else the attribute."""
        try:
            return obj[key(argument)]
        except (TypeError, LookupError):
            if isinstance(argument, str) and (type(obj) is not dict or argument in OF_DICT):
                found = self.attribute(obj, argument)
                if found is not _NOTHING:
                    return found
        return self._absent(obj, argument)

    def attribute(self, obj: Any, name: str) -> Any:
        """Return an attribute that templates may have; ``_NOTHING`` if there is none.

        Raises:
            SecurityError: there is one, and it is out of reach.
        """
        allowed = ATTRIBUTES.get(type(obj))
        if allowed is None and isinstance(obj, str):
            allowed = ATTRIBUTES[str]
        if allowed is not None and name in allowed:
            return getattr(obj, name)
        if isinstance(obj, Undefined):
            return getattr(obj, name, _NOTHING)  # says what is undefined
        try:
            found = getattr(obj, name)
        except AttributeError:
            return _NOTHING
        if isinstance(obj, Namespace) and not name.startswith("_"):
            return found
        if isinstance(obj, tuple) and name in getattr(type(obj), "_fields", ()):
            return found  # of groupby
        raise _out_of_reach(obj, name)

    def _absent(self, obj: Any, name: Any) -> Undefined:
        """Stand for what is not there, but never for Python's own names."""
        if isinstance(name, str) and name.startswith("__"):
            raise _out_of_reach(obj, name)
        return self.undefined(obj=obj, name=name)

    def attribute_only(self, obj: Any, name: str) -> Any:
        """Return an attribute, never an item; undefined if there is none."""
        found = self.attribute(obj, name)
        return self._absent(obj, name) if found is _NOTHING else found

    def invoke(self, context: ChatContext, obj: Any, name: str, /, *args: Any, **kw: Any) -> Any:
        """``a.b(c)``: as ``call`` of what ``getattr`` gives, and sooner for methods of data."""
        rules = METHODS.get(type(obj))
        rule = None if rules is None else rules.get(name)
        if rule is not None:
            return rule(context.guard, getattr(obj, name), args, kw)
        return self.call(context, self.getattr(obj, name), *args, **kw)

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """Call what templates may call, within the rendering's budget.

        Raises:
            SecurityError: it is something else.
        """
        guard: Guard = context.guard  # type: ignore[attr-defined]
        kind = type(obj)
        if kind is BuiltinMethodType or kind is MethodType:
            owner = obj.__self__
            rules = METHODS.get(type(owner)) or (METHODS[str] if isinstance(owner, str) else {})
            rule = rules.get(obj.__name__)
            if rule is not None:
                return rule(guard, obj, args, kwargs)
        elif kind is Function:
            return obj.run(guard, *args, **kwargs)
        elif kind in _DEEP:
            guard.charge(1)
            guard.depth += 1
            if guard.depth > DEEPEST_CALL:
                raise TemplateFault(f"more than {DEEPEST_CALL} calls are inside each other")
            try:
                if kind is Macro:
                    return obj(context.eval_ctx, *args, **kwargs)
                return obj(*args, **kwargs)
            finally:
                guard.depth -= 1
        elif kind is Joiner or isinstance(obj, Undefined):
            return obj(*args, **kwargs)
        raise SecurityError(f"a template may not call a {kind.__name__}")


def _out_of_reach(obj: Any, name: str) -> SecurityError:
    return SecurityError(
        f"{name!r} of a {type(obj).__name__} is out of a template's reach, as is all that "
        "changes a value or leads to Python's own objects"
    )
