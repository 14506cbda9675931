"""Records in columns: the schema of the Parquet files, and how entries become rows. The place that knows pyarrow.

A row is a record of one capture. What must be known of a capture without one is a row too: `place` is -1 where its
parser gave none or failed, -2 where the capture does not count, and -3 where a visit found the page as it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from crawlspace.errors import UsageError
from crawlspace.records.entries import Placed
from crawlspace.records.journal import unusable
from crawlspace.records.rules import Canonical

if TYPE_CHECKING:
    import pyarrow as pa

EMPTY, VOID, AGAIN = -1, -2, -3
"""Places of rows that hold no record."""
BATCH_BYTES: Final = 16 << 20
"""Bytes of records that become a row group."""
BATCH_ROWS: Final = 50_000

Row = tuple[Any, ...]


def arrow() -> Any:
    """The library; raises `UsageError` when the extra is missing."""
    try:
        import pyarrow
    except ImportError as error:
        raise UsageError(
            "records in columns need the extra `records`", hint="pip install 'crawlspace[records]'"
        ) from error
    return pyarrow


def schema() -> pa.Schema:
    """The columns."""
    pa = arrow()
    word = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            ("parser", word),
            ("version", word),
            ("id", pa.int64()),
            ("generation", pa.int32()),
            ("url", pa.string()),
            ("canonical", pa.string()),
            ("fetched_at", pa.timestamp("ms", "UTC")),
            ("file", word),
            ("offset", pa.int64()),
            ("length", pa.int64()),
            ("seq", pa.int64()),
            ("place", pa.int32()),
            ("key", pa.string()),
            ("digest", pa.string()),
            ("data", pa.string()),
            ("twins", pa.list_(pa.string())),
            ("error", pa.string()),
            ("significant", pa.list_(pa.string())),
        ]
    )


def tables(placed: Iterable[Placed], canonical: Canonical) -> Iterator[pa.Table]:
    """Entries as tables of bounded size."""
    rows: list[Row] = []
    size = 0
    for each in placed:
        for row in _rows(each):
            rows.append(row)
            size += len(row[13] or "") + len(row[4])
        if size >= BATCH_BYTES or len(rows) >= BATCH_ROWS:
            yield _table(rows, canonical)
            rows, size = [], 0
    if rows:
        yield _table(rows, canonical)


def _rows(placed: Placed) -> Iterator[Row]:
    """The rows of an entry, all columns but `canonical`, which comes with all of a table at once."""
    seq, entry = placed
    visit = (entry.parser, entry.version, entry.id, entry.generation, entry.url, entry.at)
    head = (*visit, entry.file, entry.offset, entry.length, seq)
    if not entry.records:
        place = EMPTY if entry.parser else AGAIN if entry.is_again else VOID
        yield (*head, place, None, None, None, (), entry.error, entry.significant)
    for place, each in enumerate(entry.records):
        data = bytes(each.data).decode("utf-8", "replace")
        yield (*head, place, each.key, each.digest, data, each.twins, None, entry.significant)


def _table(rows: list[Row], canonical: Canonical) -> pa.Table:
    pa = arrow()
    columns: list[Sequence[Any]] = [list(column) for column in zip(*rows, strict=True)]
    distinct = list(dict.fromkeys(columns[4]))
    forms = dict(zip(distinct, canonical(distinct), strict=True))
    columns.insert(5, [forms[url] for url in columns[4]])
    fields = schema()
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)], schema=fields
    )


def write(path: Path, batches: Iterable[pa.Table]) -> int:
    """Write a file of columns, durable on return; how many rows it has. Raises `DiskFull` or `StoreError`."""
    try:
        with path.open("wb") as file:
            rows = _write(file, batches)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise unusable(path.parent, error) from error
    return rows


def _write(file: BinaryIO, batches: Iterable[pa.Table]) -> int:
    arrow()
    import pyarrow.parquet as pq

    rows = 0
    with pq.ParquetWriter(file, schema(), compression="zstd") as writer:
        for batch in batches:
            writer.write_table(batch)
            rows += batch.num_rows
    return rows


def dataset(paths: Sequence[Path]) -> Any:
    """Files of columns as one table that is read when it is asked for."""
    arrow()
    import pyarrow.dataset as ds

    return ds.dataset([str(path) for path in paths], schema=schema(), format="parquet")
