"""Conversations: what of a row is one, as it was written, before a template sees it."""
