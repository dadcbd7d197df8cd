"""Conversations: what of a row is one, as it was written, and how a template makes it a text.

``struct_nulls.py`` is about rows. Of templates read ``sandbox.py`` first (what a compiled one
promises), then ``budget.py``, ``extents.py`` and ``guard.py`` (how much one rendering may take),
``environment.py`` and ``generated_code.py`` (how Jinja is made to ask), ``methods.py``,
``formats.py``, ``functions.py``, ``filters.py`` and ``conditions.py`` (all that a template
reaches), ``generation.py`` (where an assistant's words are) and ``templates.py`` (what a tokenizer
brings). Jinja is loaded when the first template is compiled.
"""
