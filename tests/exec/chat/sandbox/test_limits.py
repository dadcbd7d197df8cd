"""Whatever a template does ends soon, in little memory, by the same count each time."""

# ruff: noqa: E501 - a template stands on one line, where a new line would be part of it

from __future__ import annotations

import sys
import threading
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from zephon.errors import PlanError
from zephon.exec.chat.sandbox import TemplateFault, budget, compile_template
from zephon.exec.chat.sandbox.environment import ChatEnvironment
from zephon.exec.chat.sandbox.generated_code import GuardedCode

TOO_LARGE = r"""
'a' * 10**9
10**9 * 'a'
[1] * 10**9
(1,) * 10**9
'a'|center(10**10)
'a'.center(10**10)
'a'.ljust(10**10)
'a'.rjust(10**10)
'a'.zfill(10**10)
'\t'.expandtabs(10**9)
'\t'.expandtabs(tabsize=10**9)
('a' * 10**6).replace('a', 'b' * 10**6)
('a' * 10**6)|replace('a', 'b' * 10**6)
('a' * 10**4)|replace('', 'b' * 10**6)
('a' * 10**6).join('b' * 10**3)
('b' * 10**3)|join('a' * 10**6)
('a\n' * 10**3)|indent(10**6)
'a'|indent(10**10, true)
[1]|batch(10**10, 1)|list
('%s' * 10**3) % (('x' * 10**5,) * 10**3)
('%s' * 10**3)|format(*(('x' * 10**5,) * 10**3))
('%(a)s' * 10**3) % {'a': 'x' * 10**5}
('{0}' * 10**3).format('x' * 10**5)
('<' * 10**7)|urlencode
('<' * 2 * 10**7)|e
('a' * 10**7)|list
('a ' * 10**7).split()
('a' * 10**7).split('a')
('a\n' * 10**7).splitlines()
['a' * 10**7] * 10 ~ 1
('a' * 10**7 ~ 'b') * 7
(('%a' * 10**4) % (('\u0390' * 10**4,) * 10**4))
""".strip().splitlines()


@pytest.mark.parametrize("expression", TOO_LARGE)
def test_no_value_grows_without_end(expression: str) -> None:
    template = compile_template("\n{{ " + expression + " }}", name="large")
    with pytest.raises(
        TemplateFault, match=r"a text or list the size of|a text has more"
    ) as caught:
        template.render({})
    assert caught.value.line == 2


@pytest.mark.parametrize("upper", ["x.upper()", "x|upper"])
def test_a_text_that_grows_with_its_case_is_counted(
    upper: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "LONGEST_TEXT", 100_000)
    template = compile_template("{{ " + upper + " }}", name="large")
    assert template.render({"x": "\u0390"}) == "\u0399\u0308\u0301"
    with pytest.raises(TemplateFault, match="the size of 120,000 characters"):
        template.render({"x": "\u0390" * 40_000})


OTHERS = {
    "range(10**9)": "Range too big",
    "2**(10**9)": "more than 4096 bits",
    "10**5000": "more than 4096 bits",
    "(2**4000) * (2**4000)": "more than 4096 bits",
    "('f' * 10**5)|int(base=16)": "more than 4096 bits",
    "[2**4090] * 99|sum * 99": "more than 4096 bits",
    "1|round(10**9)": "at most 400 digits",
    "1|round(-10**9)": "at most 400 digits",
    "huge|int": "more than 1,000 digits",
    "'%09999999999d' % 1": "a width or precision is larger",
    "'%(a)09999999d' % {'a': 1}": "a width or precision is larger",
    "'%(a(b))9999999d' % {'a(b)': 1}": "a width or precision is larger",
    "'%.999999999f' % 1": "a width or precision is larger",
    "'%*d' % (10**9, 1)": "a width or precision is larger",
    "'%.*f' % (10**9, 1)": "a width or precision is larger",
    "'%0999999999d'|format(1)": "a width or precision is larger",
    "'%0999999999d' is odd": "a width or precision is larger",
    "'%0999999999d' is even": "a width or precision is larger",
    "'%0999999999d' is divisibleby 1": "a width or precision is larger",
    "raw % 1": "bytes cannot be filled in",
    "'{:>9999999999}'.format(1)": "a width or precision is larger",
    "'{:>{w}}'.format(1, w=10**10)": "a width or precision is larger",
    "'{:.999999999f}'.format(1.0)": "a width or precision is larger",
    "('{:' ~ '>' * 101 ~ '}').format(1)": "more than 100 characters",
    "'{:f}'.format(huge)": "a number has more than 1,000 digits",
    "('%s'|safe) % 1": "marked safe",
    "('{}'|safe).format(1)": "marked safe",
    "[1]|tojson(indent=10**9)": "at most 64 characters",
    "[1]|tojson(separators=('a' * 99, 'b'))": "at most 64 characters",
    "[1]|map(attribute='a.' * 101)|list": "an attribute has more than 100 characters or 16 parts",
    "[1]|sort(attribute='a.' * 101)": "an attribute has more than 100 characters or 16 parts",
    "[1]|selectattr('a.' * 101)|list": "an attribute has more than 100 characters or 16 parts",
    "day.strftime('%A' * 101)": "more than 200 characters",
    "strftime_now('%A' * 101)": "more than 200 characters",
    "'a'|pprint": "'pprint' is not for chat templates",
    "'a'|striptags": "'striptags' is not for chat templates",
    "'a'|urlize": "'urlize' is not for chat templates",
    "'a'|wordwrap": "'wordwrap' is not for chat templates",
    "[1]|map(attribute='a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a')|list": "or 16 parts",
    "{'a': 1}.keys() - ['b']": "the values of a set are in another order each time",
    "huge": "a number has more than 1,000 digits",
    "'%d' % huge": "a number has more than 1,000 digits",
    "{}|xmlattr": "'xmlattr' is not for chat templates",
    "deep": "a value is nested more than 100 times",
    "deep|tojson": "a value is nested more than 100 times",
    "deep == deep": "a value is nested more than 100 times",
}


@pytest.mark.parametrize(("expression", "problem"), OTHERS.items(), ids=OTHERS)
def test_what_would_take_too_much_is_refused_before_it_is_done(
    expression: str, problem: str
) -> None:
    deep: Any = []
    for _ in range(200):
        deep = [deep]
    row = {
        "huge": Decimal("1e999999"),
        "raw": b"%0999999999d",
        "day": date(2026, 3, 31),
        "strftime_now_date": "2026-03-31",
        "deep": deep,
    }
    template = compile_template("\n\n{{ " + expression + " }}", name="much")
    with pytest.raises(TemplateFault, match=problem) as caught:
        template.render(row)
    assert caught.value.line == 3


GROWING = {
    "texts by +": "{% set ns.x = ns.x + ns.x %}",
    "texts by ~": "{% set ns.x = ns.x ~ ns.x %}",
    "texts by %": "{% set ns.x = '%s%s' % (ns.x, ns.x) %}",
    "texts by format": "{% set ns.x = '{0}{0}'.format(ns.x) %}",
    "texts by join": "{% set ns.x = [ns.x, ns.x]|join %}",
    "texts by replace": "{% set ns.x = ns.x.replace('a', 'aa') %}",
    "texts by set": "{% set y %}{{ ns.x }}{{ ns.x }}{% endset %}{% set ns.x = y %}",
    "texts by filter": "{% set y %}{% filter upper %}{{ ns.x }}{{ ns.x }}{% endfilter %}{% endset %}"
    "{% set ns.x = y %}",
    "texts by macros": "{% macro m(t) %}{{ t }}{{ t }}{% endmacro %}{% set ns.x = m(ns.x) %}",
    "lists by +": "{% set ns.x = (ns.x|list) + (ns.x|list) %}",
    "lists by *": "{% set ns.x = (ns.x|list) * 2 %}",
    "quoted lists": "{% set ns.x = [ns.x, ns.x]|string %}",
    "json": "{% set ns.x = [ns.x, ns.x]|tojson %}",
    "numbers": "{% set ns.n = ns.n * ns.n %}",
}


@pytest.mark.parametrize("step", GROWING.values(), ids=GROWING)
def test_nothing_doubles_for_long(step: str) -> None:
    source = (
        "{% set ns = namespace(x='ab', n=3) %}\n{% for i in range(99) %}" + step + "{% endfor %}"
    )
    with pytest.raises(TemplateFault, match=r"size of|more than") as caught:
        compile_template(source, name="growing").render({})
    assert caught.value.line == 2


SHARED = r"""
ns.x
ns.x|tojson
ns.x|string
'' ~ ns.x
'%s' % (ns.x,)
'{}'.format(ns.x)
ns.x == ns.y
ns.x != ns.y
ns.x < ns.y
ns.x in [ns.y]
ns.x in (1, ns.y)
[ns.x].index(ns.y)
[ns.x, ns.y]|sort
[ns.x, ns.y]|min
[ns.x, ns.y]|unique|list
[ns.x, ns.y]|groupby(0)
[ns.x]|select('eq', ns.y)|list
{ns.x: 1}
{}[ns.x]
{}.get(ns.x)
{1: 2}[ns.x]
ns.x in {}
ns.x is filter
ns.x is test
dict([(ns.x, 1)])
{}.keys() - [ns.x]
[ns.x, ns.x]|join
{'a': ns.x}|dictsort(by='value')
[ns.x]|urlencode
""".strip().splitlines()


@pytest.mark.parametrize("expression", SHARED)
def test_a_tuple_that_holds_itself_many_times_is_not_walked_through(expression: str) -> None:
    """Sixty pairs in memory are 2**60 parts to whom walks through them."""
    source = (
        "{% set ns = namespace(x=(1,), y=(1,)) %}{% for i in range(60) %}"
        "{% set ns.x = (ns.x, ns.x) %}{% set ns.y = (ns.y, ns.y) %}{% endfor %}\n\n"
        "{{ " + expression + " }}"
    )
    with pytest.raises(TemplateFault, match="a value has more than 1,048,576 parts") as caught:
        compile_template(source, name="shared").render({})
    assert caught.value.line == 3


ENDLESS = {
    "loops": "{% for i in range(1000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}",
    "loops that leave all out": "{% for i in range(1000) %}{% for j in range(1000) if false %}"
    "{% endfor %}{% endfor %}",
    "macros": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}"
    "{{ m(40) }}",
    "callers": "{% macro m(n) %}{% if n %}{{ caller() }}{{ caller() }}{% endif %}{% endmacro %}"
    "{% for i in range(99999) %}{% call m(1) %}{% endcall %}{% endfor %}",
    "recursive loops": "{% for x in [0] * 2 recursive %}{% if loop.depth < 40 %}{{ loop([0] * 2) }}"
    "{% endif %}{% endfor %}",
    "blocks": "{% set ns = namespace(n=0) %}{% block b %}{% endblock %}"
    "{% for i in range(99999) %}{{ self.b() }}{% endfor %}",
    "values made late": "{{ range(99999)|map('string')|select|reject('eq', '')|list|length }}",
    "slices": "{{ [1]|slice(10**10)|list }}",
    "texts that are searched": "{% set x = 'a' * 10**6 %}{% for i in range(9999) %}"
    "{% if 'b' in x %}{% endif %}{% endfor %}",
    "slow searches": "{% set x = 'a' * 2400 %}{% set y = 'a' * 1200 ~ 'b' %}"
    "{% for i in range(999) %}{% if y in x %}{% endif %}{% endfor %}",
    "slow searches from the end": "{{ ('a' * 10**6).rfind('b' ~ 'a' * 10**5) }}",
    "slow strips": "{{ ('a' * 10**6).strip('b' * 10**5 ~ 'a') }}",
    "slow trims": "{{ ('a' * 10**6)|trim('b' * 10**5 ~ 'a') }}",
    "lists that are searched": "{% set x = range(9999)|list %}{% for i in range(9999) %}"
    "{% if 'b' in x %}{% endif %}{% endfor %}",
    "lists that are counted": "{% set x = range(9999)|list %}{% for i in range(9999) %}"
    "{% if x.count(7) %}{% endif %}{% endfor %}",
    "lists that are sorted": "{% set x = range(9999)|list %}{% for i in range(9999) %}"
    "{% if x|sort %}{% endif %}{% endfor %}",
    "texts that are compared": "{% set x = 'a' * 10**6 %}{% set y = 'a' * 10**6 %}"
    "{% for i in range(9999) %}{% if x == y %}{% endif %}{% endfor %}",
    "formats with paths": "{% set f = '{0' ~ '.a' * 99999 ~ '}' %}{{ f.format(1) }}",
    "formats with braces": "{% set f = '{{' * 99999 %}{{ f.format(1) }}",
    "sums": "{% for i in range(9999) %}{% if range(9999)|sum %}{% endif %}{% endfor %}",
    "titles": "{% for i in range(9999) %}{% if ('a' * 99999)|title %}{% endif %}{% endfor %}",
    "words": "{% for i in range(9999) %}{% if ('a ' * 9999)|wordcount %}{% endif %}{% endfor %}",
}


@pytest.mark.parametrize("source", ENDLESS.values(), ids=ENDLESS)
def test_work_is_counted(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "MOST_STEPS", 50_000)  # ends the test sooner
    with pytest.raises(TemplateFault, match="rendering takes more than 50,000 steps") as caught:
        compile_template("\n" + source, name="endless").render({})
    assert caught.value.line == 2


NESTED = {
    "macro": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "caller": "{% macro m(n) %}{% call m(n) %}{{ caller() }}{% endcall %}{% endmacro %}{{ m(1) }}",
    "block": "{% block a %}{{ self.a() }}{% endblock %}",
    "loop": "{% for x in [[1]] recursive %}{{ loop([x]) }}{% endfor %}",
    "filters": "{% set ns = namespace(a=[]) %}{% for i in range(9999) %}"
    "{% set ns.a = ns.a|map('upper') %}{% endfor %}{{ ns.a|list }}",
    "filters of lists": "{% set ns = namespace(a=[]) %}{% for i in range(9999) %}"
    "{% set ns.a = [ns.a]|map('first') %}{% endfor %}{{ ns.a|first }}",
}


@pytest.mark.parametrize("source", NESTED.values(), ids=NESTED)
def test_depth_is_counted_wherever_it_begins(source: str) -> None:
    """Python's own limit depends on how deep the caller is; ours does not."""
    template = compile_template(source, name="deep")

    def problem(depth: int) -> str:
        if depth:
            return problem(depth - 1)
        with pytest.raises(TemplateFault) as caught:
            template.render({})
        return str(caught.value)

    assert "more than 64" in problem(0)
    assert problem(200) == problem(0)


def test_lists_that_are_deep_in_each_other_end_without_harm() -> None:
    source = (
        "{% set ns = namespace(a=[]) %}{% for i in range(99999) %}{% set ns.a = [ns.a] %}"
        "{% endfor %}{{ ns.a|length }}"
    )
    assert compile_template(source, name="deep").render({}) == "1"


def test_what_stands_in_the_template_counts_as_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "LONGEST_TEXT", 1_000_000)
    template = compile_template(
        "{% for i in range(99) %}" + "x" * 20_000 + "{% endfor %}", name="x"
    )
    with pytest.raises(TemplateFault, match="the size of 1,980,000 characters"):
        template.render({})
    fits = compile_template("{% for i in range(9) %}" + "x" * 20_000 + "{% endfor %}", name="x")
    assert len(fits.render({})) == 180_000


def test_output_ends_where_it_is_too_long() -> None:
    source = "{% set x = 'x' * 10**7 %}\n{% for i in range(9) %}{{ x }}{% endfor %}"
    with pytest.raises(TemplateFault, match="the output has more than 67,108,864") as caught:
        compile_template(source, name="long").render({})
    assert caught.value.line == 2


@pytest.mark.parametrize(
    "source",
    [
        "{{ " + "(" * 3_000 + "1" + ")" * 3_000 + " }}",
        "{{ " + "[" * 300 + "1" + "]" * 300 + " }}",
        "{{ 1" + " + 1" * 20_000 + " }}",
        "{{ a" + ".a" * 20_000 + " }}",
        "{{ a" + " or a" * 300 + " }}",
        "{% if a %}" * 200 + "{% endif %}" * 200,
        "{% for a in b %}" * 30 + "{% endfor %}" * 30,
    ],
    ids=lambda source: source[:16],
)
def test_a_template_that_is_nested_too_deeply_does_not_compile(source: str) -> None:
    with pytest.raises(PlanError, match="chat template 'deep': it does not compile: it is nested"):
        compile_template(source, name="deep")


def test_a_template_that_is_too_long_does_not_compile() -> None:
    with pytest.raises(PlanError, match="it has 300,000 characters, at most 262,144 are allowed"):
        compile_template("x" * 300_000, name="long")


def test_a_jinja_that_writes_other_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later version must not undo what is counted here without a word."""
    monkeypatch.delattr(GuardedCode, "visit_Mod")
    with pytest.raises(PlanError, match=r"jinja2 3\.\S+ writes code in another way .* modulo\(;"):
        ChatEnvironment()


def test_long_conversations_are_well_within_the_limits() -> None:
    source = (
        "{% for m in messages[::-1] %}{% if m.role == 'user' %}{% set last = m %}{% endif %}"
        "{% endfor %}{% for m in messages %}{% if '</think>' in m.content %}"
        "{% set content = m.content.split('</think>')[-1].lstrip('\\n') %}"
        "{{ '<|im_start|>' + m.role + '\\n' + content.strip() + '<|im_end|>\\n' }}"
        "{% else %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endif %}"
        "{% endfor %}"
    )
    texts = {"user": "x" * 100_000, "assistant": "<think>t</think>\n" + "y " * 50_000}
    messages = [{"role": role, "content": texts[role]} for role in ("user", "assistant") * 250]
    text = compile_template(source, name="long").render({"messages": messages})
    assert 49_000_000 < len(text) < 51_000_000


def test_threads_render_one_template_at_once() -> None:
    source = (
        "{% set ns = namespace(n=0) %}{% macro say(t) %}{% generation %}{{ t }}{% endgeneration %}"
        "{% endmacro %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{{ ns.n }}"
        "{{ say(m.content) }}{% endfor %}"
    )
    template = compile_template(source, name="shared")
    wrong: list[object] = []

    def render(name: str) -> None:
        messages = [{"content": f"{name}{place}"} for place in range(20)]
        for _ in range(30):
            text, ranges = template.render_marked({"messages": messages})
            if [text[start:stop] for start, stop in ranges] != [m["content"] for m in messages]:
                wrong.append(text)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=render, args=(name,)) for name in "abcdef"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong
