"""Content identity after a re-keying: what names merged URLs names who stayed, and hosts leave what they brought.

What a merged page said is forgotten: it is one page with another now. Where it stands for itself again, it is fetched
again and known from then on. Members of the index of near-duplicates that name it are found, and passed over.
"""

from __future__ import annotations

import sqlite3

from crawlspace.frontier.content import EXACT, NEAR
from crawlspace.frontier.rekeying import Cursor
from crawlspace.frontier.sql import statements
from crawlspace.types import Verdict

_SQL = statements(__package__, "rekey_pages.sql")

_TOTALS = {Verdict.EXACT: EXACT, Verdict.NEAR: NEAR}


class Pages:
    """One step, inside a transaction of the caller; goes on where the last one ended, and may be repeated."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def pages(self, after: Cursor, limit: int) -> Cursor | None:
        """The next pages name who stayed; merged ones go."""
        (end,) = self._connection.execute(_SQL["pages_end"], (*after, limit)).fetchone()
        if end is None:
            return None
        between = (*after, end)
        self._connection.execute(_SQL["point_pages"], between)
        for statement in ("count_merged", "count_own"):
            for hid, verdict, n in self._connection.execute(_SQL[statement], between).fetchall():
                self._uncount(hid, Verdict(verdict), n, merged=statement == "count_merged")
        self._connection.execute(_SQL["no_own_copies"], between)
        self._connection.execute(_SQL["drop_pages"], between)
        return (end,)

    def said(self, after: Cursor, limit: int) -> Cursor | None:
        """The next texts belong to who stayed."""
        (end,) = self._connection.execute(_SQL["said_end"], (*after, limit)).fetchone()
        if end is None:
            return None
        self._connection.execute(_SQL["point_said"], (*after, end))
        return (end,)

    def leave(self, old: int, new: int) -> None:
        """What a host brought goes to the host that has its name now."""
        for table in ("host", "hours", "shapes"):
            if old != new:
                self._connection.execute(_SQL[f"inherit_{table}"], {"old": old, "new": new})
            self._connection.execute(_SQL[f"drop_{table}"], (old,))

    def _uncount(self, hid: int, verdict: Verdict, n: int, *, merged: bool) -> None:
        name = _TOTALS.get(verdict)
        if name is not None:
            self._connection.execute(_SQL["uncount_total"], (n, name))
        exact, near = (n if verdict is each else 0 for each in (Verdict.EXACT, Verdict.NEAR))
        self._connection.execute(_SQL["uncount_host"], (n if merged else 0, exact, near, hid))
