"""Stateless steps, one a file; the table says which physical step each one runs."""

from zephon.exec.operators.fetch_rows import FetchRows
from zephon.exec.operators.tokenize_column import TokenizeColumn

__all__ = ["FetchRows", "TokenizeColumn"]
