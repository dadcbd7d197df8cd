"""The tree of a template, with what each repeated part takes each time it runs.

Every loop, macro and block takes steps by how much is written in it.
"""

from __future__ import annotations

from jinja2 import nodes
from jinja2.exceptions import TemplateAssertionError

from zephon.exec.chat.sandbox.budget import READ
from zephon.exec.chat.sandbox.generation import raw_code

SPREAD = "*"
"""A filter that no template can name."""

_REFUSED: dict[type[nodes.Node], str] = {
    nodes.Extends: "extends: there is no other template to load",
    nodes.Include: "include: there is no other template to load",
    nodes.Import: "import: there is no other template to load",
    nodes.FromImport: "import: there is no other template to load",
    nodes.ScopedEvalContextModifier: "autoescape: a chat template writes plain text, not HTML",
}


def prepare(template: nodes.Template, name: str | None) -> None:
    """Refuse what no chat template can do, and make each repeated part take steps.

    Raises:
        TemplateAssertionError: the template loads another one, or writes HTML.
    """
    for node in template.find_all(nodes.Node):
        for kind, problem in _REFUSED.items():
            if isinstance(node, kind):
                raise TemplateAssertionError(problem, node.lineno, name)
    for node in [template, *template.find_all((nodes.For, nodes.Macro, nodes.CallBlock))]:
        node.body.insert(0, _charge(node))
        if isinstance(node, nodes.For) and node.test is not None:
            charged = raw_code("charged()", node.lineno)
            node.test = nodes.And(charged, node.test, lineno=node.lineno)
    for call in template.find_all((nodes.Call, nodes.Filter, nodes.Test)):
        if call.dyn_args is not None:
            call.dyn_args = _spread(call.dyn_args)
        if call.dyn_kwargs is not None:
            call.dyn_kwargs = _spread(call.dyn_kwargs)
    for block in template.find_all(nodes.Block):
        block.body.insert(0, _charge(block))


def _charge(node: nodes.Node) -> nodes.ExprStmt:
    size = letters = 0
    for inner in node.find_all(nodes.Node):
        size += 1
        if isinstance(inner, nodes.TemplateData):
            letters += len(inner.data)
    return nodes.ExprStmt(
        raw_code(f"charge({1 + size // 4 + (letters >> READ)})", node.lineno), lineno=node.lineno
    )


def _spread(node: nodes.Expr) -> nodes.Filter:
    """Count what ``*values`` and ``**values`` hand to a call."""
    return nodes.Filter(node, SPREAD, [], [], None, None, lineno=node.lineno)
