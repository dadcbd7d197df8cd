"""Damaged files: whatever bytes stand in them, rows are right, or an error says where they are not.

Each test goes on for the seconds of ``--fuzz``.
"""
