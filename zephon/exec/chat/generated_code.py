"""The Python code that Jinja makes of a template, with its costly places handed to a guard.

What is output passes ``write`` or ``text``, and what is in a dict is taken from it without a call.
"""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame, operators

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
)
"""Methods of the guard that the code calls by these names."""

OF_DICT = frozenset(dir(dict))
"""Names that ``a.b`` finds in the type of a dict before it looks into the dict."""


class GuardedCode(CodeGenerator):
    """Writes calls of the guard where Jinja writes bare operations."""

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
        self.write("write(" if frame.buffer is None else "text(")

    def _output_child_to_const(
        self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo
    ) -> str:
        if not isinstance(node.as_const(frame.eval_ctx), str | int | float | None):
            raise nodes.Impossible  # the guard knows what can be written
        return super()._output_child_to_const(node, frame, finalize)

    def visit_Add(self, node: nodes.Add, frame: Frame) -> None:
        """Write a whole chain of ``+`` as one call, with neighbouring constants joined."""
        parts: list[nodes.Expr] = []
        left: nodes.Expr = node
        while isinstance(left, nodes.Add):
            parts.append(left.right)
            left = left.left
        parts.append(left)
        parts.reverse()
        if len(parts) == 2 and any(map(_is_number, parts)):
            self._operation(" + ", parts, frame)
        else:
            self._call("added", _joined_constants(parts), frame)

    def visit_Sub(self, node: nodes.Sub, frame: Frame) -> None:
        """``a - b``."""
        if _is_number(node.left) or _is_number(node.right):
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
            small = _is_constant(values[1])
            self.write("(" if hows[0] == "in" else "(not ")
            if small:
                self._operation(" in ", values, frame)
            else:
                self._call("within", values, frame)
            self.write(")")
        elif any(map(_is_scalar, values)):
            self._operation(f" {operators[hows[0]]} ", values, frame)
        else:
            self.write(f"compared({hows[0]!r}, ")
            self._arguments(values, frame)

    def visit_Getattr(self, node: nodes.Getattr, frame: Frame) -> None:
        """``a.b``, which is the item of a dict nearly always."""
        if node.attr in OF_DICT:
            super().visit_Getattr(node, frame)
            return
        name = repr(node.attr)
        self.write(f"(v[{name}] if type(v := ")
        self.visit(node.node, frame)
        self.write(f") is dict and {name} in v else environment.getattr(v, {name}))")

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
            if _is_scalar(item.key):
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


def _is_scalar(node: nodes.Expr) -> bool:
    """Whether a node is a constant that is compared in one step."""
    return isinstance(node, nodes.Const) and not isinstance(node.value, tuple | list | dict)


def _is_number(node: nodes.Expr) -> bool:
    return isinstance(node, nodes.Const) and isinstance(node.value, int | float)


def _is_constant(node: nodes.Expr) -> bool:
    """Whether a node is a constant, or a list of such."""
    if isinstance(node, nodes.List | nodes.Tuple):
        return all(map(_is_scalar, node.items))
    return _is_scalar(node)


def _joined_constants(parts: Sequence[nodes.Expr]) -> list[nodes.Expr]:
    """Join texts that stand beside each other in a chain of ``+``."""
    joined: list[nodes.Expr] = []
    for part in parts:
        last = joined[-1] if joined else None
        if (
            isinstance(part, nodes.Const)
            and isinstance(last, nodes.Const)
            and type(part.value) is str
            and type(last.value) is str
        ):
            joined[-1] = nodes.Const(last.value + part.value, lineno=last.lineno)
        else:
            joined.append(part)
    return joined
