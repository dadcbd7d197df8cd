"""No template reaches Python, changes a row, or loads another template."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from zephon.errors import PlanError
from zephon.exec.chat.sandbox import TemplateFault, compile_template

ROW: dict[str, Any] = {"messages": [{"role": "user", "content": "x", "tags": ["a"]}]}

OUT_OF_REACH = r"""
''.__class__
''['__class__']
''|attr('__class__')
''|attr('__cl' ~ 'ass__')
{}.__class__
(1).__class__
messages.__len__()
messages[0]['__class__']
'{0.__class__}'.format(1)
'{0[__class__]}'.format('')
'{0.imag}'.format(1)
'{a.__class__.__mro__}'.format_map({'a': 1})
''.format.__self__
''.format.__globals__
lipsum.__globals__
cycler.__init__.__globals__
joiner.__init__
namespace.__init__
dict.__base__
range.run
raise_exception.run.__globals__
self.__init__
self._TemplateReference__context
messages|map(attribute='role.__class__')|list
messages|map('attr', '__class__')|list
messages|groupby('__class__')
messages|sort(attribute='__class__')
messages|sum('__class__')
messages|join(attribute='role.__class__')
messages|selectattr('__class__')|list
messages.append
messages.append({})
messages.pop()
messages.sort()
messages.reverse()
messages.extend([1])
messages.insert(0, 1)
messages.clear()
messages.remove(messages[0])
messages|first|attr('pop')
messages[0].update({'a': 1})
messages[0].pop('role')
messages[0].popitem()
messages[0].setdefault('x', 1)
messages[0].clear()
messages[0].tags.append('b')
messages[0]['tags'].append('b')
messages[0].get('tags').append('b')
(messages|first).tags.append('b')
dict(messages[0]).update(a=1)
{}.fromkeys(messages)
messages|indent
''.encode()
''.maketrans
''.translate({})
(1).to_bytes(9)
(1.5).hex()
""".strip().splitlines()


@pytest.mark.parametrize("expression", OUT_OF_REACH)
def test_python_and_what_changes_a_row_are_out_of_reach(expression: str) -> None:
    row = copy.deepcopy(ROW)
    template = compile_template("a\n{{ " + expression + " }}", name="hostile")
    with pytest.raises(TemplateFault) as caught:
        template.render(row)
    assert caught.value.line == 2
    assert row == ROW


def test_what_is_out_of_reach_is_named() -> None:
    with pytest.raises(TemplateFault, match=r"^line 1: 'append' of a list is out of a template's"):
        compile_template("{{ messages.append(1) }}", name="hostile").render(ROW)


@pytest.mark.parametrize(
    "source",
    [
        "{% for x in [1] %}{{ loop.__init__ }}{% endfor %}",
        "{% for x in [1] %}{{ loop._iterator }}{% endfor %}",
        "{% for x in [1] %}{{ loop.changed.__func__ }}{% endfor %}",
        "{% macro m() %}{% endmacro %}{{ m._func }}",
        "{% macro m() %}{% endmacro %}{{ m.__call__ }}",
        "{% macro m() %}{{ caller.__globals__ }}{% endmacro %}{% call m() %}{% endcall %}",
        "{% macro m() %}{{ caller._func }}{% endmacro %}{% call m() %}{% endcall %}",
        "{% set f = ''.join %}{{ f.__self__ }}",
        "{% set x = {'a': 1} %}{% set x.a = 2 %}",
        "{% set messages.x = 1 %}",
        "{% set ns = namespace(messages[0]) %}{% set ns.role = 'changed' %}{{ 1 // 0 }}",
    ],
)
def test_nothing_behind_loops_and_macros_is_reached(source: str) -> None:
    row = copy.deepcopy(ROW)
    with pytest.raises(TemplateFault) as caught:
        compile_template(source, name="hostile").render(row)
    assert caught.value.line == 1
    assert row == ROW


@pytest.mark.parametrize(
    "written",
    [
        "messages.copy",
        "range",
        "namespace(a=1)",
        "cycler(1)",
        "joiner()",
        "self",
        "messages|map('e')",
    ],
)
def test_what_is_no_data_is_not_written(written: str) -> None:
    """Some would be written with an address in memory, which is another one each time."""
    for source in ("{{ %s }}", "{{ [%s] }}", "{{ '' ~ (%s) }}", "{{ '%%s' %% (%s) }}"):
        with pytest.raises(TemplateFault, match="is no data and cannot be written"):
            compile_template(source % written, name="odd").render(ROW)


@pytest.mark.parametrize("called", ["messages", "'a'", "f", "1", "messages[0].f"])
def test_only_what_is_listed_is_called(called: str) -> None:
    row = {"messages": [{"f": print}], "f": print}
    with pytest.raises(TemplateFault, match="a template may not call a"):
        compile_template("{{ " + called + "() }}", name="odd").render(row)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("{% include 'a' %}", "include: there is no other template to load"),
        ("{% import 'a' as b %}", "import: there is no other template to load"),
        ("{% from 'a' import b %}", "import: there is no other template to load"),
        ("{% extends 'a' %}", "extends: there is no other template to load"),
        ("{% if x %}{% include x %}{% endif %}", "include: there is no other template to load"),
        ("{% autoescape true %}{{ x }}{% endautoescape %}", "autoescape: a chat template writes"),
        ("{% do messages.append(1) %}", "Encountered unknown tag 'do'"),
        ("{{ 1|nosuch }}", "No filter named 'nosuch'"),
    ],
)
def test_what_a_chat_template_has_no_use_for_does_not_compile(source: str, problem: str) -> None:
    with pytest.raises(
        PlanError, match=f"chat template 'odd', line 2: it does not compile: {problem}"
    ):
        compile_template("\n" + source, name="odd")


@pytest.mark.parametrize(
    "source", ["{{ [1, 2]|random }}", "{{ lipsum() }}", "{{ strftime_now('%Y') }}"]
)
def test_what_gives_another_text_each_time_is_a_fault(source: str) -> None:
    with pytest.raises(TemplateFault, match=r"another|tomorrow"):
        compile_template(source, name="odd").render({})


def test_the_date_of_a_recipe_is_the_date_of_today() -> None:
    template = compile_template("{{ strftime_now('%d %b %Y') }}", name="dated")
    assert template.render({"strftime_now_date": "2026-03-31"}) == "31 Mar 2026"
    with pytest.raises(TemplateFault, match=r"chat_template_kwargs=\{'strftime_now_date': 'YYYY"):
        template.render({})
    for wrong in ("tomorrow", 7):
        with pytest.raises(
            TemplateFault, match="strftime_now_date is no date such as '2026-03-31'"
        ):
            template.render({"strftime_now_date": wrong})
