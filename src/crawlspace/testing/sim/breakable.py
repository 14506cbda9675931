"""A connection whose work can fail in the middle: what was done of a transaction must then be undone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

_FRAME = ("BEGIN", "COMMIT", "ROLLBACK", "PRAGMA")


class Breakable:
    """Passes everything on; the statement at which `left` reaches 0 fails."""

    def __init__(self, connection: sqlite3.Connection, committed: Callable[[], None]) -> None:
        """`committed` is told when a transaction has ended well."""
        self._connection = connection
        self.committed = committed
        self._left: int | None = None
        self._code = sqlite3.SQLITE_IOERR
        self.struck = False

    def break_off(self, statements: int, code: int) -> None:
        """Let the statement after so many others fail with this code of SQLite."""
        self._left, self._code = statements, code
        self.struck = False

    def mend(self) -> None:
        """Nothing fails any more."""
        self._left = None

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        self._count(sql)
        cursor = self._connection.execute(sql, *parameters)
        if sql == "COMMIT":
            self.committed()
        return cursor

    def executemany(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        self._count(sql)
        return self._connection.executemany(sql, *parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def _count(self, sql: str) -> None:
        if self._left is None or sql.startswith(_FRAME):
            return
        self._left -= 1
        if self._left < 0:
            self._left = None
            self.struck = True
            error = sqlite3.OperationalError("the simulated disk has failed")
            error.sqlite_errorcode = self._code
            raise error
