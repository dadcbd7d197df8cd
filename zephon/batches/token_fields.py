"""Where tokens are looked for when nobody names their field."""

from __future__ import annotations

TOKEN_FIELDS = ("input_ids", "tokens", "token_ids", "ids")
