"""Rows as an Apache Parquet file: columns with types, for DuckDB, pandas, Spark and the like.

Rows are written in groups of bounded size. The one place where exports know pyarrow, which comes with the extra
`parquet`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, BinaryIO

from crawlspace.errors import UsageError
from crawlspace.exports.columns import Cell, Column, Kind, json_text, plain
from crawlspace.exports.tables import AddRow, Row

if TYPE_CHECKING:
    import pyarrow

ROWS_AT_ONCE = 20_000
BYTES_AT_ONCE = 32 << 20
"""A group of rows ends here too: rows may hold whole texts of pages."""


def require() -> None:
    """Raise `UsageError` when pyarrow is not installed."""
    try:
        import pyarrow.parquet  # noqa: F401 -- asked for, not used
    except ImportError as error:
        raise UsageError("Parquet needs the extra `parquet`", hint="pip install 'crawlspace[parquet]'") from error


@contextmanager
def parquet(out: BinaryIO, columns: Sequence[Column]) -> Iterator[AddRow]:
    """Write a table to `out`: gives the function that takes its rows. Raises `UsageError` without pyarrow."""
    require()
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    schema = pyarrow.schema([(column.name, _type(column.kind)) for column in columns])
    with ParquetWriter(out, schema, compression="zstd") as writer:
        groups = _Groups(schema, [column.kind for column in columns], writer)
        yield groups.add
        groups.end()


class _Groups:
    """Rows gathered until they are a group."""

    def __init__(self, schema: pyarrow.Schema, kinds: Sequence[Kind], writer: Any) -> None:
        self._schema = schema
        self._kinds = kinds
        self._writer = writer
        self._rows: list[list[Any]] = []
        self._bytes = 0

    def add(self, row: Row) -> None:
        values = [_value(kind, cell) for kind, cell in zip(self._kinds, row, strict=True)]
        self._rows.append(values)
        self._bytes += sum(len(value) for value in values if isinstance(value, str))
        if len(self._rows) >= ROWS_AT_ONCE or self._bytes >= BYTES_AT_ONCE:
            self.end()

    def end(self) -> None:
        import pyarrow

        if not self._rows:
            return
        arrays = [
            pyarrow.array(values, type=field.type)
            for values, field in zip(zip(*self._rows, strict=True), self._schema, strict=True)
        ]
        self._writer.write_table(pyarrow.Table.from_arrays(arrays, schema=self._schema))
        self._rows.clear()
        self._bytes = 0


def _type(kind: Kind) -> pyarrow.DataType:
    import pyarrow

    match kind:
        case Kind.WHOLE:
            return pyarrow.int64()
        case Kind.FLAG:
            return pyarrow.bool_()
        case Kind.TIME:
            return pyarrow.timestamp("ms", tz="UTC")
        case Kind.TEXT | Kind.JSON:
            return pyarrow.string()


def _value(kind: Kind, cell: Cell) -> Any:
    if cell is None:
        return None
    match kind:
        case Kind.TIME:
            return datetime.fromisoformat(str(cell))
        case Kind.JSON:
            return json_text(cell)
        case Kind.TEXT:
            return plain(str(cell))
        case Kind.WHOLE | Kind.FLAG:
            return cell
