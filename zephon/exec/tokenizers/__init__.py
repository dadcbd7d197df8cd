"""Text to token ids: the encoder interface, one back end a file, and the probe that compares them.

Read ``encoder.py`` (what a back end promises), ``gigatoken_encoder.py``, ``reference_encoder.py``
and ``whitespace_encoder.py`` (the back ends), ``definition.py`` and ``sources.py`` (what a
tokenizer means and where it comes from), ``probe.py``, ``verdicts.py`` and ``guard.py`` (why the
fast one may be trusted), ``pool.py`` and ``loaded.py`` (who holds encoders), ``tokenizer.py`` and
``load.py`` (what the engine calls), ``brackets.py`` (ids to rows), ``places.py`` (where in its text
a token lies). No tokenizer library is loaded
before a tokenizer is. Nothing here knows of lanes, datasets or plans.
"""

from zephon.exec.tokenizers.encoder import Encoded, Encoder, Template
from zephon.exec.tokenizers.load import load_tokenizer
from zephon.exec.tokenizers.tokenizer import Tokenizer

__all__ = ["Encoded", "Encoder", "Template", "Tokenizer", "load_tokenizer"]
