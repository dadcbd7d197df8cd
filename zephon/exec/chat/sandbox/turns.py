"""Where each message begins in a text: marks at the head of the loop over ``messages``.

What a template makes of the first messages is then the beginning of what it makes of all, and what
stands behind the loop, if it never looked at a later message. That is seen while it renders: before
each statement that could, a mark is written as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jinja2 import nodes

from zephon.exec.chat.sandbox.generation import BEGIN, raw_code

TURN, LOOK, END = -1, -2, -3
"""What stands in marks in place of a line: a message begins, a later one is asked for, all are
through."""

_LOOKS_BACK = frozenset({"first", "index", "index0", "depth", "depth0", "previtem", "changed"})
_ELSEWHERE = (
    nodes.AssignBlock,
    nodes.Block,
    nodes.CallBlock,
    nodes.Extends,
    nodes.FilterBlock,
    nodes.FromImport,
    nodes.Import,
    nodes.Include,
    nodes.InternalName,
    nodes.Macro,
    nodes.Scope,
    nodes.With,
)
"""What writes somewhere else first, or runs later; few templates have both that and such loops."""


def mark_turns(tree: nodes.Template) -> int | None:
    """Put the marks into a template.

    Returns:
        How many messages there must be for what is outside of the loop; None: there is no one loop
        over the messages, or what stands behind it depends on them, or nothing was understood.
    """
    loops = [
        place
        for place, node in enumerate(tree.body)
        if isinstance(node, nodes.For) and _is_name(node.iter, "messages")
    ]
    if len(loops) != 1 or next(tree.find_all(_ELSEWHERE), None) is not None:
        return None
    (place,) = loops
    loop = tree.body[place]
    assert isinstance(loop, nodes.For)
    head, tail = tree.body[:place], tree.body[place + 1 :]
    if loop.test is not None or loop.recursive or loop.else_:
        return None
    stored = {name.name for name in tree.find_all(nodes.Name) if name.ctx != "load"}
    stored |= {name.name for name in tree.find_all(nodes.NSRef)}
    behind = {name for node in tail for name in _names(node)}
    if behind & (stored | {"messages", "loop", "tools", "documents"}):
        return None
    if "add_generation_prompt" in stored or any(
        "add_generation_prompt" in _names(node) for node in [*head, loop]
    ):
        return None
    least: list[int] = [0]
    head = _marked(head, least)
    loop.body = [*_mark(TURN), *_marked(loop.body, least)]
    tree.body = [*head, loop, *_mark(END), *tail]
    return max(least)


def _marked(body: Sequence[nodes.Node], least: list[int]) -> list[nodes.Node]:
    """Put a mark before each statement that looks ahead once it is reached."""
    made: list[nodes.Node] = []
    for node in body:
        match node:
            case nodes.If():
                asked = [node.test, *(other.test for other in node.elif_)]
                for branch in (node, *node.elif_):
                    branch.body = _marked(branch.body, least)
                node.else_ = _marked(node.else_, least)
            case nodes.For():
                asked = [node.iter] if node.test is None else [node.iter, node.test]
                node.body = _marked(node.body, least)
                node.else_ = _marked(node.else_, least)
            case _:
                asked = [node]
        looks = [_looks_ahead(each, least) for each in asked]  # all, for the sake of least
        if True in looks:
            made += _mark(LOOK)
        made.append(node)
    return made


def _looks_ahead(node: nodes.Node, least: list[int]) -> bool:
    match node:
        case nodes.Getitem(node=nodes.Name(name="messages"), arg=nodes.Const(value=int() as at)):
            least.append(at + 1)
            return at < 0
        case nodes.Getattr(node=nodes.Name(name="loop"), attr=attribute):
            return attribute not in _LOOKS_BACK
        case nodes.Name(name="messages" | "loop"):
            return True
    looks = [_looks_ahead(child, least) for child in node.iter_child_nodes()]
    return True in looks


def _names(node: nodes.Node) -> Iterator[str]:
    if isinstance(node, nodes.Name):
        yield node.name
    yield from (name.name for name in node.find_all(nodes.Name))


def _is_name(node: nodes.Node, name: str) -> bool:
    return isinstance(node, nodes.Name) and node.name == name


def _mark(kind: int) -> list[nodes.Node]:
    return [nodes.Output([raw_code(text, 1)], lineno=1) for text in (f"{BEGIN}{kind})", "end()")]
