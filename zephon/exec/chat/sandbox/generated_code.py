"""The Python code that Jinja makes of a template, with its costly places handed to a guard.

What is output passes ``write`` or ``text``, and what is in a dict is taken from it without a call.
"""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame, operators

from zephon.exec.chat.sandbox.constant_nodes import (
    is_constant,
    is_number,
    is_scalar,
    joined_constants,
)

LOCALS = (
    "added",
    "begin",
    "chained",
    "charge",
    "charged",
    "compared",
    "concatenated",
    "end",
    "modulo",
    "multiplied",
    "power",
    "sliced",
    "subtracted",
    "text",
    "within",
    "write",
    "wrote",
)
"""Methods of the guard that the code calls by these names."""

OF_DICT = frozenset(dir(dict))
"""Names that ``a.b`` finds in the type of a dict before it looks into the dict."""


OF_LOOP = frozenset(
    ("depth", "depth0", "first", "index", "index0", "last", "length", "nextitem", "previtem")
)
"""What a template may ask of a loop that it is in."""

_SIMPLE_TESTS = {
    "false": ("(", " is False)"),
    "none": ("(", " is None)"),
    "string": ("isinstance(", ", str)"),
    "true": ("(", " is True)"),
}


class GuardedCode(CodeGenerator):
    """Writes calls of the guard where Jinja writes bare operations."""

    _adding = "added"
    """What the next chain of ``+`` is a call of."""

    def write_commons(self) -> None:
        """Begin the root and each block: bind the guard's methods."""
        super().write_commons()
        self.writeline("guard = context.guard")
        self.writeline("concat = guard.joined")
        self.writeline("key = environment.key")
        for name in LOCALS:
            self.writeline(f"{name} = guard.{name}")

    def _output_child_pre(
        self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo
    ) -> None:
        at_once = frame.buffer is None and isinstance(node, nodes.Add)
        self._adding = "wrote" if at_once else "added"
        self.write("(" if at_once else "write(" if frame.buffer is None else "text(")

    def _output_child_to_const(
        self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo
    ) -> str:
        if not isinstance(node.as_const(frame.eval_ctx), str | int | float | None):
            raise nodes.Impossible  # the guard knows what can be written
        return super()._output_child_to_const(node, frame, finalize)

    def visit_Add(self, node: nodes.Add, frame: Frame) -> None:
        """Write a whole chain of ``+`` as one call, with neighbouring constants joined."""
        adding, self._adding = self._adding, "added"
        parts: list[nodes.Expr] = []
        left: nodes.Expr = node
        while isinstance(left, nodes.Add):
            parts.append(left.right)
            left = left.left
        parts.append(left)
        parts.reverse()
        if len(parts) == 2 and any(map(is_number, parts)):
            numbers = adding == "added"
            self.write("" if numbers else "write(")
            self._operation(" + ", parts, frame)
            self.write("" if numbers else ")")
        else:
            self._call(adding, joined_constants(parts), frame)

    def visit_Sub(self, node: nodes.Sub, frame: Frame) -> None:
        """``a - b``."""
        if is_number(node.left) or is_number(node.right):
            self._operation(" - ", [node.left, node.right], frame)
        else:
            self._call("subtracted", [node.left, node.right], frame)

    def visit_Mul(self, node: nodes.Mul, frame: Frame) -> None:
        """``a * b``."""
        self._call("multiplied", [node.left, node.right], frame)

    def visit_Mod(self, node: nodes.Mod, frame: Frame) -> None:
        """``a % b``."""
        self._call("modulo", [node.left, node.right], frame)

    def visit_Pow(self, node: nodes.Pow, frame: Frame) -> None:
        """``a ** b``."""
        self._call("power", [node.left, node.right], frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        """``a ~ b``."""
        self._call("concatenated", node.nodes, frame)

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:
        """``a == b``, ``a in b``, ``a < b < c``; with a small constant as it is."""
        values = [node.expr, *(operand.expr for operand in node.ops)]
        hows = [operand.op for operand in node.ops]
        if len(hows) > 1:
            self.write(f"chained({tuple(hows)!r}, ")
            self._arguments(values, frame)
        elif hows[0] in ("in", "notin"):
            small = is_constant(values[1])
            self.write("(" if hows[0] == "in" else "(not ")
            if small:
                self._operation(" in ", values, frame)
            else:
                self._call("within", values, frame)
            self.write(")")
        elif any(map(is_scalar, values)):
            self._operation(f" {operators[hows[0]]} ", values, frame)
        else:
            self.write(f"compared({hows[0]!r}, ")
            self._arguments(values, frame)

    def visit_Getattr(self, node: nodes.Getattr, frame: Frame) -> None:
        """``a.b``, which is the item of a dict nearly always."""
        if node.attr in OF_DICT:
            super().visit_Getattr(node, frame)
            return
        kind, sign, name = "dict", f"[{node.attr!r}]", repr(node.attr)
        has = f" and {name} in v"
        if isinstance(node.node, nodes.Name) and node.node.name == "loop" and node.attr in OF_LOOP:
            kind, sign, has = "LoopContext", f".{node.attr}", ""
        self.write(f"(v{sign} if type(v := ")
        self.visit(node.node, frame)
        self.write(f") is {kind}{has} else environment.getattr(v, {name}))")

    def visit_Test(self, node: nodes.Test, frame: Frame) -> None:
        """``a is b``; the commonest tests need no call."""
        simple = _SIMPLE_TESTS.get(node.name)
        plain = not (node.args or node.kwargs or node.dyn_args or node.dyn_kwargs)
        if plain and simple is not None and not isinstance(node.node, nodes.Const):
            self.write(simple[0])
            self.visit(node.node, frame)
            self.write(simple[1])
        elif plain and node.name in ("defined", "undefined"):
            self.write("(" if node.name == "defined" else "(not ")
            self._is_defined(node.node, frame)
            self.write(")")
        else:
            super().visit_Test(node, frame)

    def _is_defined(self, node: nodes.Expr, frame: Frame) -> None:
        """Ask whether there is something, without making what stands for nothing."""
        if isinstance(node, nodes.Name):
            name = frame.symbols.ref(node.name)
            self.write(f"({name} is not missing and not isinstance({name}, Undefined))")
            return
        match node:
            case nodes.Getattr(node=owner, attr=str() as name):
                getter = "getattr"
            case nodes.Getitem(node=owner, arg=nodes.Const(value=str() as name)):
                getter = "getitem"
            case _:
                owner, name, getter = node, "__", ""
        if name in OF_DICT or name.startswith("__"):
            self.write("(not isinstance(")
            self.visit(node, frame)
            self.write(", Undefined))")
            return
        self.write(f"(({name!r} in v and not isinstance(v[{name!r}], Undefined)) if type(v := ")
        self.visit(owner, frame)
        self.write(f") is dict else not isinstance(environment.{getter}(v, {name!r}), Undefined))")

    def visit_Call(self, node: nodes.Call, frame: Frame, forward_caller: bool = False) -> None:
        """``a(b)``, ``a.b(c)``."""
        if isinstance(node.node, nodes.Getattr):
            self.write("environment.invoke(context, ")
            self.visit(node.node.node, frame)
            self.write(f", {node.node.attr!r}")
        else:
            self.write("environment.call(context, ")
            self.visit(node.node, frame)
        self.signature(node, frame, {"caller": "caller"} if forward_caller else None)
        self.write(")")

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:
        """``a[b]``, ``a[b:c]``."""
        if isinstance(node.arg, nodes.Slice):
            none = nodes.Const(None, lineno=node.lineno)
            bounds = (node.arg.start, node.arg.stop, node.arg.step)
            self._call("sliced", [node.node, *(each or none for each in bounds)], frame)
        elif isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str):
            name = repr(node.arg.value)
            self.write(f"(v[{name}] if type(v := ")
            self.visit(node.node, frame)
            self.write(f") is dict and {name} in v else environment.getitem(v, {name}))")
        else:
            super().visit_Getitem(node, frame)

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:
        """``{a: b}``; a key that is no constant is looked at before it is hashed."""
        self.write("{")
        for item in node.items:
            if is_scalar(item.key):
                self.visit(item.key, frame)
            else:
                self._call("key", [item.key], frame)
            self.write(": ")
            self.visit(item.value, frame)
            self.write(", ")
        self.write("}")

    def _call(self, name: str, values: Sequence[nodes.Expr], frame: Frame) -> None:
        self.write(f"{name}(")
        self._arguments(values, frame)

    def _arguments(self, values: Sequence[nodes.Expr], frame: Frame) -> None:
        for value in values:
            self.visit(value, frame)
            self.write(", ")
        self.write(")")

    def _operation(self, sign: str, values: Sequence[nodes.Expr], frame: Frame) -> None:
        self.write("(")
        for place, value in enumerate(values):
            self.write(sign if place else "")
            self.visit(value, frame)
        self.write(")")
