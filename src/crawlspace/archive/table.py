"""Writes the table of captures: rows gathered in bounded memory, then files that get their names when whole.

The one place where the archive knows pyarrow, which comes with the extra `parquet`. Rows that were not yet written
when the process was killed are in the WARC files, and a mark tells that the table lacks them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from crawlspace.archive.columns import COLUMNS, Kind, partition_of
from crawlspace.archive.rows import Row
from crawlspace.errors import UsageError

if TYPE_CHECKING:
    import pyarrow

ROWS = 20_000
"""Rows held in memory: some 30 MB."""
PARTIAL = "_partial-"
"""How the name of a file begins that is not whole; readers of such tables pass over names like this."""
MARK = "_unfinished-"
"""How the name of the mark begins that is there while rows may be missing."""

_PLACES = {column.name: place for place, column in enumerate(COLUMNS)}
_HOST, _AT, _FILE, _OFFSET = (_PLACES[name] for name in ("host", "at", "file", "offset"))


class CaptureTable:
    """Files of one writer, below the table's directory. Calls follow one another; none is made twice at once."""

    def __init__(self, directory: Path, writer: str, *, rows: int = ROWS) -> None:
        """`writer` is a name that no other writer of the table has. Raises `UsageError` without pyarrow."""
        self._schema = _schema()
        self._directory = directory
        self._mark = directory / (MARK + re.sub(r"[^A-Za-z0-9]+", "-", writer))
        self._most = rows
        self._held: list[Row] = []
        self._marked = False
        self.failure: OSError | None = None
        """Why rows were not written, which `index` can make good; None while all were."""

    def begin(self) -> None:
        """Make the mark, before the first capture is durable that will have a row."""
        if self._marked:
            return
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._mark.touch()
            self._marked = True
        except OSError as error:
            self._fail(error)

    def add(self, rows: Iterable[Row]) -> None:
        """Take rows of captures that are durable. A disk that fails stops nothing: see `failure`."""
        self.begin()
        try:
            for row in rows:
                self._held.append(row)
                if len(self._held) >= self._most:
                    self._write()
        except OSError as error:
            self._fail(error)

    def close(self) -> None:
        """Write what is left. The table is whole then, unless something failed."""
        try:
            if self._held:
                self._write()
            if self._marked and self.failure is None:
                self._mark.unlink(missing_ok=True)
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self.failure = self.failure or error
        self._held.clear()

    def _write(self) -> None:
        parts: dict[str, list[Row]] = {}
        for row in self._held:
            parts.setdefault(partition_of(row[_AT], row[_HOST]).path, []).append(row)
        for path, rows in parts.items():
            self._write_part(self._directory / path, rows)
        self._held.clear()

    def _write_part(self, directory: Path, rows: list[Row]) -> None:
        """One file. Its name is that of its first capture, which no other file can have."""
        from pyarrow import parquet, table

        directory.mkdir(parents=True, exist_ok=True)
        first = rows[0]
        path = directory / f"{first[_FILE].partition('.warc')[0]}-{first[_OFFSET]}.parquet"
        columns = map(list, zip(*rows, strict=True))
        data = table(dict(zip(self._schema.names, columns, strict=True)), schema=self._schema)
        partial = path.with_name(PARTIAL + path.name)
        try:
            with partial.open("wb") as file:
                parquet.write_table(data, file, compression="zstd")
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


def lacks_rows(directory: Path) -> bool:
    """Whether a writer of the table was killed, or writes now, so that rows may be missing."""
    return directory.is_dir() and any(directory.glob(MARK + "*"))


def _schema() -> pyarrow.Schema:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise UsageError(
            "the table of captures needs the extra `parquet`", hint="pip install 'crawlspace[parquet]'"
        ) from error
    kinds = {
        Kind.TEXT: pyarrow.string(),
        Kind.WORD: pyarrow.string(),
        Kind.WHOLE: pyarrow.int64(),
        Kind.SMALL: pyarrow.int32(),
        Kind.TIME: pyarrow.timestamp("ms", tz="UTC"),
        Kind.FLAG: pyarrow.bool_(),
    }
    return pyarrow.schema(
        [pyarrow.field(column.name, kinds[column.kind], nullable=not column.required) for column in COLUMNS]
    )
