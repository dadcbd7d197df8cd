"""Jinja for templates that nobody trusts: nothing of Python is reachable, and all work is counted.

Read ``template.py`` first (what a compiled one promises), then ``budget.py``, ``extents.py`` and
``guard.py`` (how much one rendering may take), ``environment.py``, ``weighed_tree.py``,
``generated_code.py`` and ``constant_nodes.py`` (how Jinja is made to ask), ``methods.py``,
``formats.py``, ``functions.py``, ``filters.py`` with ``text_filters.py`` and ``list_filters.py``,
and ``conditions.py`` (all that a template reaches), and ``generation.py`` (where an assistant's
words are). Jinja is loaded when the first template is compiled.
"""

from zephon.exec.chat.sandbox.template import Template, TemplateFault, compile_template

__all__ = ["Template", "TemplateFault", "compile_template"]
