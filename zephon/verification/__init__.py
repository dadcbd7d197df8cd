"""Whether a recipe gives the same bytes on every topology and after every restart.

Read in this order: ``verify`` (what is run), ``cuts`` (where runs are cut), ``ranks`` (ranks as
threads), ``run`` (rows in canonical order), ``row_digests`` and ``row_bytes`` (what is compared),
``report``.
"""

from zephon.verification.verify import Verification, verify

__all__ = ["Verification", "verify"]
