"""Records as tables that can be asked: what counts, things and their history, links. The one place that knows DuckDB.

Nothing that is asked can reach a file or the network, change a setting or write: the database lies in memory, the
columns are handed in by pyarrow, and the doors are locked before the first question.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec import Struct

from crawlspace.errors import StoreDamaged, UsageError
from crawlspace.parsers.definition import rank_of
from crawlspace.records import columns
from crawlspace.records.entries import Placed
from crawlspace.records.journal import PLACES, is_sealed, numbers, read
from crawlspace.records.manifest import Manifest, Part, read_manifest
from crawlspace.records.rules import Rules
from crawlspace.records.sink import settled
from crawlspace.records.statements import statements

_SQL: Final = statements("views.sql")
_VIEWS: Final = (
    *(
        "voids",
        "live",
        "again",
        "confirmed",
        "observations",
        "parses",
        "looks",
        "keyed",
        "sightings",
        "steps",
        "history",
        "records",
        "twins",
    ),
    *("links", "declared"),
)
TABLES: Final = ("records", "history", "sightings", "observations", "parses", "twins", "links", "declared")
"""What a person may ask of the records."""

_BATCH: Final = 10_000
MEMORY: Final = "1GB"


class Connection(Protocol):
    """What is used of DuckDB's connection."""

    def execute(self, query: str, parameters: object = ...) -> Any: ...
    def register(self, name: str, table: object) -> Any: ...
    def close(self) -> None: ...


def connect(directory: Path, rules: Rules, memory: str = MEMORY) -> Any:
    """An empty database in memory with the function `canonical`, that spills below `directory`.

    Raises `UsageError` when the extra is missing.
    """
    columns.arrow()
    try:
        import duckdb
    except ImportError as error:
        raise UsageError(
            "asking the records needs the extra `records`", hint="pip install 'crawlspace[records]'"
        ) from error
    connection: Any = duckdb.connect(
        ":memory:",
        config={
            "python_enable_replacements": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "temp_directory": str(directory / "spill"),
            "memory_limit": memory,
            "preserve_insertion_order": "false",
        },
    )
    connection.execute("SET TimeZone = 'UTC'")
    connection.create_function(
        "canonical", _canonical(rules), ["VARCHAR"], "VARCHAR", type="arrow", null_handling="special"
    )
    return connection


@contextmanager
def errors() -> Iterator[None]:
    """What is wrong with a question is the user's to put right."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        # What follows the first paragraph draws an arrow below the question, in several lines.
        raise UsageError(
            f"the question has no answer: {' '.join(str(error).split(chr(10) * 2)[0].split())}"
        ) from error


def is_reading(connection: Any, query: str) -> bool:
    """Whether a text is one statement that only reads."""
    found = connection.extract_statements(query)
    return len(found) == 1 and found[0].type.name in ("SELECT", "EXPLAIN")


def lock(connection: Any) -> None:
    """Close the doors: from here on no file, no network and no setting can be reached."""
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def add_records(
    connection: Any, directories: Sequence[Path], rules: Rules, reach: Mapping[str, int] | None = None
) -> None:
    """Make the tables of `TABLES`, of what is folded and of what lies in journals in these directories.

    `reach` says how far settled captures reach into each file of the archive: lines of the journals about what lies
    beyond it do not count yet. What two directories have of one parser and capture counts in one of them: where the
    parser was newer, else in the first.
    """
    for number, directory in enumerate(directories):
        _add_directory(connection, directory, rules, reach, str(number))
    if len(directories) == 1:
        connection.execute("CREATE VIEW all_rows AS FROM rows_0")
    else:
        _join(connection, len(directories))
    for name in _VIEWS:
        connection.execute(_SQL[name])


def _add_directory(
    connection: Any, directory: Path, rules: Rules, reach: Mapping[str, int] | None, number: str
) -> None:
    manifest, waiting = _at_one_moment(directory)
    _add_rows(connection, directory, manifest.parts, rules, f"folded_{number}")
    counts = waiting if reach is None else _counting(directory, waiting, reach)
    fresh = list(columns.tables(counts, rules.canonical))
    import pyarrow as pa

    connection.register(f"fresh_{number}", pa.concat_tables(fresh) if fresh else columns.schema().empty_table())
    connection.execute(f"CREATE VIEW rows_{number} AS FROM folded_{number} UNION ALL FROM fresh_{number}")


def _join(connection: Any, count: int) -> None:
    """Make the rows of several directories one table, in which nothing counts twice."""
    import pyarrow as pa

    each = range(count)
    connection.execute("CREATE VIEW heads AS " + _of_each(_SQL["head"], each))
    versions = [version for (version,) in connection.execute("SELECT DISTINCT version FROM heads").fetchall()]
    ordered = sorted(versions, key=rank_of)
    ranks = {"version": pa.array(ordered, pa.string()), "rank": pa.array(range(len(ordered)), pa.int32())}
    connection.register("ranks", pa.table(ranks))
    connection.execute(_SQL["chosen_heads"])
    connection.execute("CREATE VIEW all_rows AS " + _of_each(_SQL["joined"], each))


def _of_each(query: str, numbers: Iterable[int]) -> str:
    return " UNION ALL ".join(query.removesuffix(";").replace("NUMBER", str(number)) for number in numbers)


def _at_one_moment(directory: Path) -> tuple[Manifest, list[Placed]]:
    """The manifest and what is not folded into it, though somebody may fold meanwhile."""
    while True:
        manifest = read_manifest(directory)
        waiting = [
            each for number in numbers(directory) if number not in manifest.folded for each in read(directory, number)
        ]
        if read_manifest(directory) == manifest:
            return manifest, waiting


def _counting(directory: Path, waiting: Sequence[Placed], reach: Mapping[str, int]) -> Iterator[Placed]:
    """Entries of captures that are settled."""
    before = settled(directory)
    sealed: dict[int, bool] = {}
    for place, entry in waiting:
        number = place // PLACES
        if number not in sealed:
            sealed[number] = number <= before or is_sealed(directory, number)
        if sealed[number] or not entry.parser or entry.offset + entry.length <= reach.get(entry.file, 0):
            yield Placed(place, entry)


def _add_rows(connection: Any, directory: Path, parts: Sequence[Part], rules: Rules, name: str) -> None:
    """Register parts as one table; canonical URLs that were made under other rules are made again."""
    for part in parts:
        if not (directory / part.file).is_file():
            raise StoreDamaged(f"the file of records {directory / part.file} is gone")
    current = [directory / part.file for part in parts if part.rules == rules.identifier]
    stale = [directory / part.file for part in parts if part.rules != rules.identifier]
    empty = columns.schema().empty_table()
    connection.register(f"{name}_current", columns.dataset(current) if current else empty)
    connection.register(f"{name}_stale", columns.dataset(stale) if stale else empty)
    connection.execute(
        f"CREATE VIEW {name} AS FROM {name}_current UNION ALL "  # noqa: S608 -- names of our own
        f"SELECT * REPLACE (canonical(url) AS canonical) FROM {name}_stale"
    )


class Merged(Struct, frozen=True):
    """The rows of some parts that still count."""

    connection: Any
    whole: bool

    def count(self) -> int:
        """How many rows of all parts are live."""
        return int(self.connection.execute(_SQL["count_merged"]).fetchone()[0])

    def batches(self) -> Iterator[Any]:
        """Them, as tables."""
        import pyarrow as pa

        found = self.connection.sql(_SQL["merged"], params={"whole": self.whole})
        for batch in found.to_arrow_reader(columns.BATCH_ROWS):
            yield pa.Table.from_batches([batch]).cast(columns.schema())


def merged(directory: Path, parts: Sequence[Part], chosen: Sequence[Part], rules: Rules) -> Merged:
    """The rows of `chosen` that no row of `parts` has replaced."""
    connection = connect(directory, rules)
    _add_rows(connection, directory, parts, rules, "all_rows")
    _add_rows(connection, directory, chosen, rules, "chosen")
    for name in ("voids", "live"):
        connection.execute(_SQL[name])
    return Merged(connection, len(chosen) == len(parts))


def parsed(directory: Path, rules: Rules, parser: str) -> Iterator[tuple[Any, ...]]:
    """What a parser has read, in order of URL and generation: see `parsed` in views.sql."""
    connection = connect(directory, rules)
    add_records(connection, [directory], rules)
    found = connection.execute(_SQL["parsed"], {"parser": parser})
    while rows := found.fetchmany(_BATCH):
        yield from rows


def noted(directory: Path, rules: Rules) -> Iterator[tuple[int, int]]:
    """The visits that are known to have found their page as it was (304): number and generation, in order."""
    connection = connect(directory, rules)
    add_records(connection, [directory], rules)
    found = connection.execute(_SQL["noted"])
    while rows := found.fetchmany(_BATCH):
        yield from rows


def _canonical(rules: Rules) -> Any:
    def canonical(urls: Any) -> Any:
        import pyarrow as pa

        texts = urls.to_pylist()
        distinct = list(dict.fromkeys(text for text in texts if text is not None))
        forms = dict(zip(distinct, rules.canonical(distinct), strict=True))
        return pa.array([None if text is None else forms[text] for text in texts], pa.string())

    return canonical
