"""How much one transaction does at a time, and other numbers on which all stores agree."""

from __future__ import annotations

LOST_AT_ONCE = 500
"""Leases that one transaction gives up."""

CRASHES_WORKER = "crashes_worker"
"""Class of the dead letters of URLs whose leases are lost whoever holds them."""

LOSSES = 4
"""The first loss may be a neighbour's fault; three more alone are not."""

LONGEST_WAIT_MS = 7 * 24 * 3600 * 1000
"""No pace asks for more; a later `next_at` was written by a clock that was ahead."""

BURIED_AT_ONCE = 5_000
"""Rows moved in one transaction: about a tenth of a second. The calls of lease that follow take the rest."""

KEPT_MS = 3_600_000
"""Answers are kept this long for those who asked."""

CALLED_AT_ONCE = 500
"""Groups that one call of lease looks after."""

NO_TOKEN = 0
"""Tokens begin at 1."""
