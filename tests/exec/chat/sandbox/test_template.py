"""Templates render as Jinja does, and say what generation blocks wrote."""

from __future__ import annotations

import pytest

from zephon.errors import PlanError
from zephon.exec.chat.sandbox import TemplateFault, compile_template

CHAT = """
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {{- '<a>' }}
        {%- generation %}
        {{- message.content + eos_token }}
        {%- endgeneration %}
    {%- else %}
        {{- '<u>' + message.content }}
    {%- endif %}
{%- endfor %}
"""
MESSAGES = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "hello"},
    {"role": "user", "content": "more"},
    {"role": "assistant", "content": ""},
]


def test_generation_blocks_are_found_in_the_text() -> None:
    template = compile_template(CHAT, name="chat")
    variables = {"messages": MESSAGES, "eos_token": "</s>"}
    text, ranges = template.render_marked(variables)
    assert text == "<u>hi<a>hello</s><u>more<a></s>"
    assert [text[start:stop] for start, stop in ranges] == ["hello</s>", "</s>"]
    assert template.render(variables) == text
    assert type(text) is type(template.render(variables)) is str
    assert template.has_generation_tags


def test_a_template_without_tags_has_no_ranges() -> None:
    template = compile_template("{{ messages[0].content }}", name="plain")
    assert not template.has_generation_tags
    assert template.render_marked({"messages": MESSAGES}) == ("hi", [])


@pytest.mark.parametrize(
    ("macro", "said"),
    [
        ("{{ answer('x') }}", [(2, 3)]),
        ("{{ 'ab' ~ answer('x') ~ 'c' }}", [(4, 5)]),
        ("{{ answer('x') if true else 'no' }}", [(2, 3)]),
        ("{{ answer('x' ~ answer('ab')) }}", [(2, 7)]),
        ("{% set y = answer('x') %}-{{ y }}", [(3, 4)]),
        ("{% set y %}..{{ answer('x') }}{% endset %}-{{ y }}", [(5, 6)]),
        ("{% for each in 'ab' %}{{ answer(each) }}{% endfor %}", [(2, 3), (5, 6)]),
        (
            "{% macro twice() %}{{ caller() }}{{ caller() }}{% endmacro %}"
            "{% call twice() %}-{% generation %}x{% endgeneration %}{% endcall %}",
            [(1, 2), (3, 4)],
        ),
    ],
)
def test_what_a_macro_wrote_is_found_where_it_is_written(
    macro: str, said: list[tuple[int, int]]
) -> None:
    defined = "{% macro answer(x) %}> {% generation %}{{ x }}{% endgeneration %}\n{% endmacro %}"
    text, ranges = compile_template(defined + macro, name="macro").render_marked({})
    assert ranges == said
    assert all(text[start:stop] in ("x", "a", "b", "x> ab") for start, stop in ranges)


@pytest.mark.parametrize(
    "changed",
    [
        "{{ answer('x') | trim }}",
        "{{ answer('x') | upper }}",
        "{{ 'a' + answer('x') }}",
        "{{ answer('x')[1:] }}",
        "{% set y = answer('x') %}{{ y }}{{ y }}",
        "{% set y = answer('x') %}",
        "{% set y = answer('x') %}{% set z = answer('z') %}{{ y }}{{ y }}",
        "{% filter upper %}{{ answer('x') }}{% endfilter %}",
        "{{ [answer('x')] | join }}",
    ],
)
def test_a_generation_block_whose_place_is_lost_is_a_fault(changed: str) -> None:
    defined = "{% macro answer(x) %}\n{% generation %}{{ x }}{% endgeneration %}{% endmacro %}"
    template = compile_template(defined + changed, name="macro")
    assert isinstance(template.render({}), str)
    with pytest.raises(TemplateFault, match="generation block") as caught:
        template.render_marked({})
    assert caught.value.line == 2


def test_a_block_inside_another_is_part_of_it() -> None:
    source = (
        "{% macro inner() %}{% generation %}b{% endgeneration %}{% endmacro %}"
        "-{% generation %}a{{ inner() }}c{% endgeneration %}"
        "{% generation %}{% endgeneration %}{% generation %}d{% endgeneration %}"
    )
    text, ranges = compile_template(source, name="nested").render_marked({})
    assert (text, ranges) == ("-abcd", [(1, 4), (4, 4), (4, 5)])


def test_leaving_a_generation_block_half_written_does_not_compile() -> None:
    source = "{% for x in y %}\n{% generation %}{% break %}{% endgeneration %}{% endfor %}"
    with pytest.raises(PlanError, match="'broken', line 2: it does not compile: break or continue"):
        compile_template(source, name="broken")


def test_a_template_that_is_none_does_not_compile() -> None:
    with pytest.raises(PlanError, match="chat template 'bad', line 2: it does not compile"):
        compile_template("a\n{% if %}", name="bad")


def test_a_fault_says_what_and_where() -> None:
    template = compile_template("a\n{{ x.y.z }}", name="undefined")
    with pytest.raises(TemplateFault, match="'dict object' has no attribute 'y'") as caught:
        template.render({"x": {}})
    assert caught.value.line == 2


def test_a_template_may_refuse_a_conversation() -> None:
    template = compile_template("\n\n{{ raise_exception('roles must\\nalternate') }}", name="x")
    with pytest.raises(TemplateFault, match=r"^line 3: roles must alternate$"):
        template.render({})
