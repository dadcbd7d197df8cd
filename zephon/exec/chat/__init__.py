"""Conversations to text, and to the parts of it that the assistant says.

``conversation.py`` and ``struct_nulls.py`` say what of a row is rendered, ``renderer.py`` by which
template. What is learned is a list of ``spans.py``, found in one of four ways: ``verbatim.py``,
``generation_tags.py``, ``prefixes.py``, ``substitution.py``; ``marking.py`` chooses among them, and
``masks.py`` puts spans over tokens.

Of templates read ``sandbox.py`` first (what a compiled one promises), then ``budget.py``,
``extents.py`` and ``guard.py`` (how much one rendering may take), ``environment.py``,
``weighed_tree.py``, ``generated_code.py`` and ``constant_nodes.py`` (how Jinja is made to ask),
``methods.py``, ``formats.py``, ``functions.py``, ``filters.py`` with ``text_filters.py`` and
``list_filters.py``, and ``conditions.py`` (all that a template reaches), ``generation.py`` (where
an assistant's words are) and ``templates.py`` (what a tokenizer brings). Jinja is loaded when the
first template is compiled.
"""
