"""Random expressions give what Jinja gives, or fail where it fails.

What is refused on purpose is left out: addresses in memory, and sets. Jinja folds some wrong uses
of constants to nothing, and does not look at values that nobody asks for.
"""

from __future__ import annotations

import copy
import random

import pytest

from tests.exec.chat.sandbox.plain_jinja import plain_template
from tests.exec.chat.sandbox.test_as_jinja import ROW
from zephon.errors import PlanError
from zephon.exec.chat.sandbox import TemplateFault, compile_template


def words(text: str) -> list[str]:
    return text.split()


CONSTANTS = words(
    "1 0 -1 2.5 'a' 'two' '' none true false [1,2] ('a',1) {'a':1} [] '%s' '{}' '<&>'"
)
FILTERS = words("""
upper lower title trim length list first last join join(',') sort unique reverse string int
float tojson tojson(indent=1) default('d') default('d',true) map('upper') count urlencode
map(attribute='role') select select('string') reject('none') selectattr('role') batch(2)
selectattr('role','eq','user') replace('o','0') indent center(9) abs round sum min max items
dictsort e groupby('role') capitalize truncate(5) wordcount format(1) attr('upper')
""")
METHODS = words("""
upper() strip() split() split('o') split('o',1) get('a') get('role','x') items() keys()
values() startswith('a') endswith(('a','.')) replace('a','b') join(['a','b']) find('a')
count('a') index('a') title() isdigit() rstrip('x.') splitlines() format(1,a=2) copy()
zfill(4) partition('a') lstrip(none) center(5,'*')
""")
TESTS = words("""
string mapping iterable sequence number none defined odd even true boolean lower integer
float undefined
""")
OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "~")
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "in", "and", "or")
NAMES = [*ROW, "missing"]
ON_PURPOSE = (
    "is no data and cannot be written",
    "the values of a set",
    "subscriptable",
    "not iterable",
)


def expression(chance: random.Random, depth: int) -> str:
    def part() -> str:
        return f"({expression(chance, depth - 1)})"

    kind = chance.randrange(9) if depth else 0
    match kind:
        case 0:
            return chance.choice(NAMES if chance.random() < 0.6 else CONSTANTS)
        case 1 | 2:
            return f"{part()}|{chance.choice(FILTERS)}"
        case 3:
            return f"{part()}.{chance.choice(METHODS)}"
        case 4:
            return f"{part()}.{chance.choice(['role', 'b', 'items', 'x', 'get', 'upper'])}"
        case 5:
            return f"{part()} {chance.choice(OPERATORS)} {part()}"
        case 6:
            return f"{part()} {chance.choice(COMPARISONS)} {part()}"
        case 7:
            return f"[{part()}, {part()}] if {part()} is {chance.choice(TESTS)} else {part()}"
        case _:
            return f"{part()}[{chance.choice(['1:', ':1', '::-1', '0', '-1', repr('role')])}]"


@pytest.mark.filterwarnings("ignore::SyntaxWarning")  # of code that Jinja makes
@pytest.mark.parametrize("seed", range(8))
def test_random_expressions_give_what_jinja_gives(seed: int) -> None:
    chance = random.Random(seed)
    texts = 0
    for _ in range(120):
        source = "{{ " + expression(chance, chance.randint(1, 4)) + " }}"
        row = copy.deepcopy(ROW)
        try:
            wanted = plain_template(source).render(**copy.deepcopy(ROW))
        except Exception:
            with pytest.raises((TemplateFault, PlanError)):
                compile_template(source, name="random").render(row)
            continue
        try:
            got = compile_template(source, name="random").render(row)
        except TemplateFault as fault:
            assert any(said in fault.problem for said in ON_PURPOSE), (source, wanted, fault)
            continue
        assert got == wanted, source
        assert row == ROW
        texts += 1
    assert texts > 20
