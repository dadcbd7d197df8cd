"""Conversations to text, and to the parts of it that the assistant says.

``conversation.py`` and ``struct_nulls.py`` say what of a row is rendered, ``templates.py`` which
templates a tokenizer brings, ``renderer.py`` which of them a row gets, and ``sandbox/`` runs them.
What is learned is a list of ``spans.py``, found in one of four ways: ``verbatim.py``,
``generation_tags.py``, ``prefixes.py``, ``substitution.py``; ``marking.py`` chooses among them, and
``masks.py`` puts spans over tokens.
"""
