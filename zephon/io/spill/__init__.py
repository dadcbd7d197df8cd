"""Decoded row groups on disk: what memory has no room for and random order wants again.

Read in this order: ``spill`` (what is written and mapped), ``key`` (which group is which), ``file``
(one group as a file), ``rows`` (whole rows in it), ``room`` (how much may lie there), ``texts``
(text of files that can be read from their front only).
"""
