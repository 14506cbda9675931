"""The way of rows into a table: through the pipeline, if there is one, and into the format's own kinds of values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import BinaryIO

import msgspec

from crawlspace.app.exporting.wanted import Exported, Format, Wanted
from crawlspace.app.output import Target
from crawlspace.errors import UsageError
from crawlspace.exports import parquet as parquets
from crawlspace.exports.columns import Cell, Column, Kind
from crawlspace.exports.pipeline import Item, Pipeline, StageFailed
from crawlspace.exports.sqlite import sqlite
from crawlspace.exports.tables import JSON_FORMS, AddItem, AddRow, Form, Row, items, table


def write_table(
    target: Target, wanted: Wanted, columns: Sequence[Column], rows: Iterable[Row], done: Exported
) -> None:
    """Write the rows to `target`; raises as `output` does, and `UsageError` for what a pipeline made of them."""
    with Pipeline(wanted.stages) as pipeline:
        through = _Through(pipeline, columns, done)
        if wanted.stages and wanted.format.value in JSON_FORMS:
            with target.stream() as out, items(Form(wanted.format.value), out) as add:
                through.as_items(rows, add)
            return
        shape = (*columns, *(Column(name, Kind.JSON) for name in pipeline.columns))
        with _sink(target, wanted, shape) as add_row:
            through.as_rows(rows, shape, add_row)


class _Through:
    """Rows on their way through a pipeline."""

    def __init__(self, pipeline: Pipeline, columns: Sequence[Column], done: Exported) -> None:
        self._pipeline = pipeline
        self._names = [column.name for column in columns]
        self._done = done
        done.dropped = pipeline.dropped

    def as_items(self, rows: Iterable[Row], add: AddItem) -> None:
        for row in rows:
            item = self._item(row)
            if item is not None:
                try:
                    add(item)
                except TypeError as error:
                    raise UsageError(f"what the pipeline returned is not JSON: {error}") from error
                self._done.rows += 1

    def as_rows(self, rows: Iterable[Row], shape: Sequence[Column], add: AddRow) -> None:
        for row in rows:
            through: Row | None = row
            if self._pipeline.stages:
                item = self._item(row)
                through = None if item is None else row_of(item, shape)
            if through is not None:
                add(through)
                self._done.rows += 1

    def _item(self, row: Row) -> Item | None:
        """The row as an item, as the last stage leaves it; None when it goes no further."""
        item = {name: _plain(cell) for name, cell in zip(self._names, row, strict=True)}
        name = item[self._names[0]]
        try:
            return self._pipeline.run(item)
        except StageFailed as error:
            self._done.broke(f"{name}: {error}")
            return None


def row_of(item: Item, columns: Sequence[Column]) -> Row:
    """An item as a row; raises `UsageError` for a name that has no column, or a value of another kind."""
    unknown = item.keys() - {column.name for column in columns}
    if unknown:
        raise UsageError(
            f"the pipeline adds {min(unknown)!r}, for which the table has no column",
            hint="name it in an attribute `columns` of the stage, or write .jsonl",
        )
    return [_cell(item.get(column.name), column) for column in columns]


@contextmanager
def _sink(target: Target, wanted: Wanted, columns: Sequence[Column]) -> Iterator[AddRow]:
    match wanted.format:
        case Format.SQLITE:
            with (
                target.file() as path,
                sqlite(path, wanted.what.value, columns) as add,
            ):
                yield add
        case Format.PARQUET:
            parquets.require()
            with target.stream() as out, parquets.parquet(out, columns) as add:
                yield add
        case form:
            with target.stream() as out, _text(form, out, columns, wanted) as add:
                yield add


def _text(form: Format, out: BinaryIO, columns: Sequence[Column], wanted: Wanted) -> AbstractContextManager[AddRow]:
    return table(Form(form.value), out, [column.name for column in columns], guard=wanted.guard)


def _plain(cell: Cell) -> object:
    """A cell as stages see it."""
    return msgspec.json.decode(cell) if isinstance(cell, msgspec.Raw) else cell


def _cell(value: object, column: Column) -> Cell:
    """A value that a stage left, as a cell of its column."""
    match column.kind, value:
        case _, None:
            return None
        case Kind.WHOLE, bool():
            pass
        case (Kind.WHOLE, int()) | (Kind.FLAG, bool()):
            return value  # type: ignore[return-value]  # the pattern says what it is
        case ((Kind.TEXT | Kind.TIME | Kind.JSON), str()):
            return value
        case ((Kind.TEXT | Kind.JSON), _):
            return _as_json(value, column)
    raise UsageError(f"the pipeline left {type(value).__name__} in the column {column.name}, which has {column.kind}")


def _as_json(value: object, column: Column) -> Cell:
    try:
        raw = msgspec.json.encode(value)
    except TypeError as error:
        raise UsageError(f"what the pipeline left in the column {column.name} is not JSON: {error}") from error
    return msgspec.Raw(raw) if column.kind is Kind.JSON else raw.decode()
