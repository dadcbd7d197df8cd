"""Prefixes that are known from one rendering are those that are rendered, for every template."""

import pytest

from tests.chats import CHATML, said
from tests.transformers_chats.asked import templates
from tests.transformers_chats.compared import TODAY, few
from tests.transformers_chats.conversations import SPECIALS, hostile
from zephon.exec.chat.conversation import ConversationFields
from zephon.exec.chat.faults import ChatFault
from zephon.exec.chat.prefixes import by_prefixes
from zephon.exec.chat.renderer import Renderer

FIELDS = ConversationFields("messages", "tools", "enable_thinking")
HEAD = "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}"
PROMPT = "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
AHEAD = {
    "the last": HEAD + "{% if loop.last %}!{% endif %}{% endfor %}" + PROMPT,
    "the length": HEAD + "{{ loop.length }}{% endfor %}" + PROMPT,
    "the next": HEAD + "{{ messages[loop.index0 + 1].role }}{% endfor %}" + PROMPT,
    "from the end": HEAD + "{{ messages[-1].role }}{% endfor %}" + PROMPT,
    "before the loop": "{{ messages | length }}" + HEAD + "{% endfor %}" + PROMPT,
    "another name": "{% set all = messages %}{{ all[-1].role }}" + HEAD + "{% endfor %}" + PROMPT,
    "through a state": "{% set s = namespace(n=0) %}" + HEAD + "{% set s.n = s.n + 1 %}{% endfor %}"
    "{{ s.n }}" + PROMPT,
    "in a macro": "{% macro f() %}{{ messages | length }}{% endmacro %}"
    + HEAD
    + "{{ f() }}{% endfor %}"
    + PROMPT,
    "of a loop inside": HEAD
    + "{% for x in [1] %}{{ messages[1:] }}{% endfor %}{% endfor %}"
    + PROMPT,
    "the prompt in it": HEAD + "{{ add_generation_prompt }}{% endfor %}" + PROMPT,
    "stopping": HEAD + "{% if loop.index == 3 %}{% break %}{% endif %}{% endfor %}" + PROMPT,
    "skipping": "{% for m in messages if m.role != 'user' %}{{ m.content }}{% endfor %}" + PROMPT,
    "two loops": HEAD + "{% endfor %}" + HEAD + "{% endfor %}" + PROMPT,
}


def renderer_of(text):
    return Renderer([("made", text)], {**SPECIALS, "strftime_now_date": TODAY})


def rendered(renderer, conversation, *, header):
    """What by_prefixes gives where nothing is known of turns."""
    renderer.turns = lambda conversation, fewest: None
    try:
        return by_prefixes(renderer, conversation, header=header)
    except ChatFault:
        return None
    finally:
        del renderer.turns


def test_prefixes_of_real_templates_are_the_same():
    rows = [{**row["variables"], **row} for row in few(hostile())]
    conversations = [FIELDS.of(row, padded=False)[0] for row in rows]
    known = 0
    for package in ("trl", "axolotl"):
        for name, path in templates(package).items():
            renderer = renderer_of(path.read_text(encoding="utf-8"))
            for conversation in conversations:
                answers = conversation.answers
                if not answers or renderer.turns(conversation, answers[0]) is None:
                    continue
                known += 1
                for header in (False, True):
                    found = by_prefixes(renderer, conversation, header=header)
                    wanted = rendered(renderer, conversation, header=header)
                    if isinstance(wanted, str):
                        assert isinstance(found, str), name
                    else:
                        assert found == wanted, name
    assert known > 500


@pytest.mark.parametrize("text", AHEAD.values(), ids=AHEAD)
def test_a_template_that_looks_ahead_is_not_foreseen(text):
    (conversation, _) = FIELDS.of({"messages": said("a", "b", "c", "d")}, padded=False)
    assert renderer_of(text).turns(conversation, 1) is None


def test_turns_say_what_fewer_messages_give():
    conversation, _ = FIELDS.of({"messages": said("system: s", "a", "b", "c", "d")}, padded=False)
    text = "{{ messages[0].content }}" + CHATML + "{{ eos_token }}"
    renderer = renderer_of(text)
    turns = renderer.turns(conversation, 2)
    for stop in range(1, 6):
        start = turns.text[: turns.places[stop]]
        assert renderer.text(conversation, stop) == start + turns.behind
        assert renderer.text(conversation, stop, prompt=True) == start + turns.prompt
    assert renderer.turns(conversation, 0) is None
