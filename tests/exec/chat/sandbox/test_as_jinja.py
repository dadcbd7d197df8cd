"""What is counted gives what Jinja gives, character by character, and fails where Jinja fails."""

# ruff: noqa: E501 - a template stands on one line, where a new line would be part of it

from __future__ import annotations

import copy
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.exec.chat.sandbox.plain_jinja import plain_template
from zephon.exec.chat.sandbox import TemplateFault, compile_template

ROW: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "Be <brief> & “exact”.\n"},
        {"role": "user", "content": "  What's 2 + 2?\tNow.", "n": 3},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\n4", "tool_calls": []},
        {"role": "tool", "content": {"a": [1, 2.5, None, True], "é": "ü\u2028"}},
        {"role": "assistant", "content": [{"type": "text", "text": "four"}, {"type": "image"}]},
    ],
    "tools": [{"function": {"name": "f", "parameters": {"items": {"type": "int"}, "b": 1}}}],
    "names": ["b", "a", "C", "a", "ß"],
    "numbers": [3, -1, 2.5, 0],
    "pairs": {"b": 1, "A": 2, "items": 3},
    "nested": [[1, [2, (3, 4)]], {"k": {"k": "v"}}],
    "text": "One, two, two & three.",
    "empty": "",
    "nothing": None,
    "day": date(2026, 3, 31),
    "moment": datetime(2026, 3, 31, 4, 5, 6),
    "amount": Decimal("1.50"),
}

EXPRESSIONS = r"""
messages[0].content + messages[1].content + '</s>' + '\n'
'a' + 'b' + text + 'c' + 'd'
names + ['x'] + names[1:3]
1 + 2
numbers[0] + numbers[2] + 1
text + 1
1 + text
nothing + 'x'
missing + 'x'
text ~ 1 ~ none ~ true ~ 2.5 ~ names ~ missing
names ~ pairs
names|length - 1
7 - 2 - 1
numbers[0] - numbers[1]
text - 1
'ab' * 3
3 * 'ab'
[1] * 2
numbers[0] * numbers[2]
'a' * -1
text * text
2 ** 10
1 < 2 < 3
3 > 2 > 2 > 1
'O' in text not in names
numbers[1] < numbers[3] <= 0 in numbers
2 ** -1
2.0 ** 0.5
7 // 2
7 / 2
-7 // 2
7 / 0
7 % 4
-7 % 4
7.5 % 2
'%s and %s' % (text, 1)
'%05.2f|%-5s|%+d|%x|%%' % (3.14159, 'a', 5, 255)
'%(a)s-%(b)r' % {'a': 1, 'b': 'x'}
'%s' % names
'%s %s' % 'a'
'%d' % 'a'
'%r %a' % ('é', 'é')
text == 'One, two, two & three.'
names == names
nested == nested
names == 'a'
1 == 1.0
1 == true
numbers[0] < numbers[1]
1 < 2 < 3
1 < 2 > 5
1 < 3 in [3]
text < 1
'a' < 'b'
[1, 2] < [1, 3]
messages[0] == messages[0]
'two' in text
'zwei' not in text
'a' in names
'b' in pairs
3 in numbers
[2, (3, 4)] in nested[0]
1 in text
'a' in missing
'a' in nothing
('a' in names) and not ('z' in names)
text[0] ~ text[-1] ~ text[1:4] ~ text[::-1] ~ text[::2]
names[1:] ~ names[:-1] ~ names[9:]
names[9]
names['x']
pairs['b'] ~ pairs.b ~ pairs['zz'] ~ pairs.zz
pairs['items'] ~ tools[0].function.parameters['items'].type
pairs.items is mapping
messages[4].content[0]['text']
text.upper() ~ text.lower() ~ text.title() ~ text.capitalize() ~ text.swapcase()
text.split() ~ text.split('two') ~ text.split('two', 1) ~ text.rsplit(' ', 1) ~ text.split(sep=',')
messages[2].content.split('</think>')[-1].lstrip('\n')
text.partition('two') ~ text.rpartition('two')
text.find('two') ~ text.rfind('two') ~ text.index('two') ~ text.count('two')
text.index('zwei')
text.startswith('One') ~ text.endswith(('!', '.')) ~ text.startswith('x', 2)
text.replace('two', '2') ~ text.replace('two', 'zwei', 1) ~ text.replace('', '-')
'  x '.strip() ~ 'xxax'.strip('x') ~ 'xxax'.rstrip('x') ~ 'abc'.lstrip('ba')
', '.join(names) ~ '-'.join('abc') ~ ''.join(pairs)
', '.join(numbers)
'a'.center(5) ~ 'a'.ljust(3, '.') ~ 'a'.rjust(3) ~ '7'.zfill(3) ~ 'a\tb'.expandtabs(4)
'abc'.removeprefix('a').removesuffix('c')
'{} {1}'.format(1, 2)
'{} {:>5} {:.2f} {!r}'.format(text, 'a', 3.14159, 'x')
'{a[b]} {c.d}'.format(a={'b': 1}, c={'d': 2})
'{x}'.format_map({'x': 1})
'{'.format()
'a1'.isalnum() ~ ' '.isspace() ~ '1'.isdigit() ~ 'A'.isupper()
messages[1].content.splitlines() ~ 'a\nb'.splitlines(true)
names.index('C') ~ names.count('a') ~ (1, 2, 1).count(1)
pairs.get('b') ~ pairs.get('zz') ~ pairs.get('zz', 5)
pairs.keys()|list ~ pairs.values()|list ~ pairs.items()|list
pairs.keys()
day.isoformat() ~ day.strftime('%d %b %Y') ~ day.year ~ moment.hour
day ~ moment ~ amount
amount + 1
(5).bit_length() ~ (2.0).is_integer()
names|join ~ names|join(', ') ~ messages|join('|', attribute='role') ~ numbers|join(1)
names|first ~ names|last ~ names|length ~ text|first ~ pairs|first
[]|first ~ []|last
names|list ~ text|list ~ pairs|list
names|sort ~ names|sort(case_sensitive=true) ~ names|sort(reverse=true)
messages|sort(attribute='role')|map(attribute='role')|list
numbers|sort ~ numbers|min ~ numbers|max ~ numbers|sum
[0.1] * 10|sum
[0.1, 0.2, 0.3]|sum ~ ([[1], [2]]|sum(start=[])) ~ [{'a': 1}]|sum('a') ~ []|sum(start=7)
['a']|sum
names|unique|list ~ names|unique(true)|list
messages|groupby('role')|map(attribute='grouper')|list
messages|selectattr('role', 'equalto', 'assistant')|list|length
messages|rejectattr('tool_calls', 'defined')|map(attribute='role')|join(',')
messages|selectattr('n')|list
messages|map(attribute='n', default=0)|list
names|map('upper')|list ~ names|map('replace', 'a', 'o')|join
names|select('in', ['a', 'b'])|list ~ numbers|reject('odd')|list
numbers|select|list ~ numbers|select('gt', 1)|list ~ names|select('eq', 'a')|list
(names|map('upper')) is iterable
(names|select('eq', 'zzz')) and 'true' or 'false'
names|map('upper')|first
names|map('nosuch')|list
names|reverse|list ~ text|reverse
names|map('upper')|reverse|length ~ (names|map('upper')|reverse)
names|batch(2)|list ~ names|batch(2, 'x')|list ~ names|slice(2)|list ~ names|slice(2, 'x')|list
pairs|items|list ~ pairs|dictsort ~ pairs|dictsort(true) ~ pairs|dictsort(by='value')
missing|items|list
text|upper ~ text|lower ~ text|title ~ text|capitalize ~ text|trim ~ text|trim('O.')
5|upper ~ none|lower ~ names|upper
text|replace('two', '2') ~ text|replace('two', '2', 1) ~ 5|replace(5, 6)
text|center(40) ~ '[%s]'|format('x') ~ '%(a)s'|format(a=1)
'a\nb\n\nc'|indent ~ 'a\nb'|indent(2, true) ~ 'a\n\nb'|indent('> ', blank=true)
text|truncate(9) ~ text|truncate(9, true) ~ text|truncate(9, true, '')
text|wordcount ~ text|string ~ 5|string ~ names|string
text|escape ~ text|e ~ text|safe ~ ('<'|safe + '<') ~ text|forceescape ~ text|urlencode
pairs|urlencode
'3'|int ~ 'x'|int ~ 'x'|int(7) ~ '0x1F'|int(base=16) ~ 2.9|int ~ '2.9'|int ~ none|int
'1e3'|float ~ true|float ~ none|float(2) ~ 5|float
2.567|round(1) ~ 2.5|round ~ 2.1|round(0, 'ceil') ~ 7|round(-1)
-5|abs ~ 1000000|filesizeformat ~ '99'|filesizeformat
missing|default('d') ~ nothing|default('d') ~ nothing|default('d', true) ~ empty|d('e', true)
missing ~ missing.x
missing.x.y
pairs|attr('zz') ~ text|attr('upper')()
messages|tojson ~ tools|tojson(indent=2) ~ names|tojson(ensure_ascii=true)
pairs|tojson(sort_keys=true) ~ pairs|tojson(separators=(',', ':')) ~ nested|tojson(indent='\t')
'é\u2028<>&\''|tojson ~ 1.5|tojson ~ none|tojson ~ true|tojson
day|tojson
missing|tojson
(names|map('upper'))|tojson
3 is odd ~ 4 is even ~ 9 is divisibleby(3) ~ 9 is divisibleby 4
text is string ~ names is string ~ pairs is mapping ~ names is iterable ~ names is sequence
1 is number ~ 1 is integer ~ 1.5 is float ~ true is boolean ~ nothing is none ~ missing is defined
'a' is in names ~ 'a' is lower ~ 'A' is upper ~ 1 is eq 1 ~ 1 is sameas 1 ~ 1 is lt 2 ~ true is true
'upper' is filter ~ 'odd' is test ~ range is callable ~ text is callable
range(3)|list ~ range(1, 9, 3)|list ~ range(3)|length ~ 2 in range(3)
dict(a=1, b=names) ~ dict(pairs, c=1) ~ dict([('a', 1)]) ~ {'a': 1, text: 2}[text]
{(1, 2): 3}[(1, 2)]
{[1]: 2}
(1, 2) ~ () ~ [] ~ {} ~ [1, 'a', none]
'a' if text else 'b'
'a' if missing
not text ~ (text and 1) ~ (empty or 'x') ~ (nothing or missing or 0)
text()
raise_exception('no')
-numbers[0] ~ +numbers[1]
namespace(a=1).a ~ namespace(pairs).b ~ namespace(a=1).zz
messages[1].n is defined ~ messages[0].n is defined ~ messages[0].n is undefined
pairs.items is defined ~ pairs.zz is not defined ~ pairs['items'] is defined ~ pairs['zz'] is defined
{'a': missing}.a is defined ~ {'a': 1}['a'] is defined ~ (missing is defined) ~ text is defined
text.upper is defined ~ text.zz is defined ~ text['upper'] is defined ~ names[9] is defined
namespace(a=1).a is defined ~ namespace(a=1).b is defined ~ range is defined ~ (1 + 1) is defined
missing.x is defined
missing.x is undefined
text is string ~ nothing is none ~ 1 is true ~ true is true ~ false is false ~ 0 is false
text is string(1)
text is none(1)
1 + numbers[0]
text.x + 'a'
text + missing
cycler('a', 'b').next() ~ cycler('a', 'b').current
joiner(',')() ~ 'x'
""".strip().splitlines()

STATEMENTS = {
    "loops": "{% for m in messages %}{{ loop.index }}/{{ loop.length }} {{ loop.first }}{{ loop.last }}"
    "{{ loop.revindex0 }}{{ loop.previtem.role }}{{ loop.nextitem.role }}{{ m.role }}\n{% endfor %}",
    "set to nothing": "{% macro m(a, b=a is defined) %}{{ a is defined }}{{ b }}{% endmacro %}{{ m() }}{{ m(1) }}"
    "{% set x = missing %}{{ x is defined }}{% for x in [missing, 1] %}{{ x is defined }}{% endfor %}"
    "{{ loop is defined }}{% for y in [1] %}{{ loop is defined }}{{ loop.zz is defined }}{% endfor %}",
    "sums as output": "{{ 1 + 2 }}{{ numbers[0] + 1 }}{{ names + names }}{{ text + '!' + empty }}"
    "{% macro m() %}{{ text + '!' }}{{ 1 + 2 }}{% endmacro %}{{ m() + m() }}{{ ('<'|safe) + '<' }}",
    "a loop of another name": "{% set loop = {'index': 7, 'first': 'f'} %}{{ loop.index }}{{ loop.first }}"
    "{{ loop.zz }}",
    "cycle": "{% for n in names %}{{ loop.cycle('x', 'y') }}{{ loop.changed(n) }}{% endfor %}",
    "filtered": "{% for n in names if n != 'a' %}{{ loop.index0 }}{{ n }}{% else %}none{% endfor %}",
    "else": "{% for n in [] %}x{% else %}none{% endfor %}",
    "pairs": "{% for k, v in pairs.items() %}{{ k }}={{ v }};{% endfor %}",
    "controls": "{% for n in range(9) %}{% if n == 2 %}{% continue %}{% endif %}"
    "{% if n == 5 %}{% break %}{% endif %}{{ n }}{% endfor %}",
    "recursive": "{% for n in [[1, [2]], [3]] recursive %}[{{ n if n is number else loop(n) }}"
    "{{ loop.depth }}]{% endfor %}",
    "late": "{% for n in names|map('upper') %}{{ loop.last }}{{ n }}{{ loop.length }}{% endfor %}",
    "unpack": "{% for g, ms in messages|groupby('role') %}{{ g }}{{ ms|length }}{% endfor %}",
    "scope": "{% set x = 1 %}{% for n in names %}{% set x = n %}{% endfor %}{{ x }}",
    "namespace": "{% set ns = namespace(n=0, t='') %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
    "{% set ns.t = ns.t + m.role[0] %}{% endfor %}{{ ns.n }}{{ ns.t }}",
    "macro": "{% macro m(a, b='x', c=a) %}<{{ a }}{{ b }}{{ c }}{{ varargs }}{{ kwargs }}>{% endmacro %}"
    "{{ m(1) }}{{ m(1, 2, 3, 4) }}{{ m(b=1, a=2, d=5) }}{{ m(*names) }}{{ m(**{'a': 1}) }}{{ m() }}",
    "macro facts": "{% macro m(a) %}{{ caller }}{% endmacro %}{{ m.name }}{{ m.arguments }}",
    "recursive macro": "{% macro m(n) %}{{ n }}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(9) }}",
    "call": "{% macro m(t) %}<{{ t }}>{{ caller(t) }}</{{ t }}>{% endmacro %}"
    "{% call(x) m('b') %}{{ x }}{{ text }}{% endcall %}",
    "macro as text": "{% macro m() %} a {% endmacro %}{{ m()|trim ~ m()|length ~ (m() + 'x') }}",
    "set block": "{% set x %}  {{ text }}\n{% endset %}[{{ x }}]{% set y|upper|trim %} a {% endset %}{{ y }}",
    "filter block": "{% filter upper|replace('T', 't') %}{{ text }}{% endfilter %}",
    "with": "{% with a = 1, b = text %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "block": "{% block b %}{{ text }}{% set z = 1 %}{% endblock %}{{ self.b() }}{{ z }}",
    "blocks in a loop": "{% for n in names %}{% block c scoped %}{{ n + text }}{% endblock %}{% endfor %}",
    "raw": "{% raw %}{{ x }}{% endraw %}{# no #}\n  {#- no -#}  \n{{- 1 -}} \n x",
    "trim": "  {% if true %}\n    a\n  {% endif %}\n{%- if true -%}  b  {%+ endif %}\n  {{ 1 }}\n\n",
    "if": "{% if missing %}a{% elif names|length > 9 %}b{% elif 'x' is odd or 1 %}c{% else %}d{% endif %}",
    "elif": "{% if missing %}a{% elif text is string and 'two' in text %}b{% endif %}",
    "wrong filter": "{% if false %}{{ 1|nosuch }}{% endif %}ok",
    "tuple": "{% set a, b = names[0], names[1] %}{{ a }}{{ b }}{% set a, b = 1 %}",
    "generation": "{% set x = 1 %}{% for m in messages %}\n  {%- generation %}\n  {% set x = 2 %}\n"
    "{{ m.role ~ x ~ loop.index }}\n  {%- endgeneration -%}\n {{ x }}{% endfor %}",
    "shadowed": "{% set range = 3 %}{{ range }}{% set guard = 1 %}{% set text = guard %}{{ text }}",
    "named as the guard": "{% macro write(text, charge) %}{{ text }}{{ charge }}{% endmacro %}"
    "{% set begin = 'b' %}{% set context = 'c' %}{{ write(begin, charge=context) }}{{ dict(guard=1) }}",
}


def both(source: str) -> None:
    row = copy.deepcopy(ROW)
    template = compile_template(source, name="compared")
    try:
        wanted: str | None = plain_template(source).render(**copy.deepcopy(ROW))
    except Exception:
        wanted = None
    if wanted is None:
        with pytest.raises(TemplateFault):
            template.render(row)
    else:
        assert template.render(row) == wanted
        assert template.render_marked(row)[0] == wanted
    assert row == ROW


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_gives_what_jinja_gives(expression: str) -> None:
    both("a {{ " + expression + " }}\nb")
    both("{% macro m() %}{{ " + expression + " }}{% endmacro %}{{ m() }}")


@pytest.mark.parametrize("source", STATEMENTS.values(), ids=STATEMENTS)
def test_statements_give_what_jinja_gives(source: str) -> None:
    both(source)
