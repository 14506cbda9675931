"""Questions to a crawl in SQL: its outcomes, captures, links and records as tables, and the usual questions by name.

A question only reads: the tables are copies or views, the database lies in memory, and no file, network or setting
can be reached from it (see `records.views`). Tables are made when a question names them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from typing import Any

from msgspec import Struct

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.parsing import records_at, rules_of
from crawlspace.app.snapshot import open_snapshot, others_in_words
from crawlspace.errors import UsageError
from crawlspace.records import Rules
from crawlspace.records.columns import arrow
from crawlspace.records.statements import statements
from crawlspace.records.views import MEMORY, TABLES, add_records, connect, errors, is_reading, lock
from crawlspace.settings import Settings
from crawlspace.states import UrlState
from crawlspace.types import Story

_QUERIES = statements("queries.sql", __package__)
_TABLES = statements("tables.sql", __package__)
_NAMES = re.compile(r"\w+")
_PARAMETER = re.compile(r"\$(\w+)")
_AT_ONCE = 20_000

OUTCOMES = "outcomes"
CAPTURES = "captures"
LINKED = frozenset({"links", "declared"})
"""Tables that the parser `links` fills."""


class Question(Struct, frozen=True):
    """What is asked."""

    query: str
    parameters: Mapping[str, str | None]


class Answer(Struct, frozen=True):
    """Its columns, and its rows as they come."""

    columns: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]
    caution: str = ""
    """Why it may say less than it seems to."""


def named() -> dict[str, str]:
    """The questions that have names, and what each is."""
    return {name.replace("_", "-"): text.partition("\n")[0].removeprefix("-- ") for name, text in _QUERIES.items()}


def question(text: str | None, name: str | None, parameters: Mapping[str, str]) -> Question:
    """A question in SQL, or one that has a name; raises `UsageError`."""
    if (text is None) == (name is None):
        raise UsageError("ask in SQL, or by --query NAME", hint="questions with names: crawlspace sql --list")
    query = text if text is not None else _QUERIES.get((name or "").replace("-", "_"))
    if query is None:
        raise UsageError(f"there is no question {name!r}", hint=f"there are {', '.join(named())}")
    wanted = dict.fromkeys(_PARAMETER.findall(query))
    unknown = [each for each in parameters if each not in wanted]
    if unknown:
        raise UsageError(f"the question has no parameter {unknown[0]!r}", hint="parameters stand in it as $name")
    return Question(query, {**wanted, **parameters})


@contextmanager
def ask(
    directory: CrawlDirectory,
    settings: Settings,
    asked: Question,
    reach: Mapping[str, int] | None = None,
    memory: str = MEMORY,
) -> Iterator[Answer]:
    """The answer to a question; raises `UsageError` for one that is wrong, or that does not only read.

    `reach` says how far settled captures reach into each file of the archive, while a crawl may run.
    """
    rules = rules_of(settings.identity)
    places = [records_at(each) for each in (directory, *directory.beside)]
    with closing(connect(places[0], rules, memory)) as connection, errors():
        if not is_reading(connection, asked.query):
            raise UsageError("a question is one SELECT", hint="nothing can be changed by a question")
        names = {name.lower() for name in _NAMES.findall(asked.query)}
        _add_tables(connection, directory, settings, rules, names)
        caution = ""
        if names & set(TABLES):
            add_records(connection, places, rules, reach)
            caution = "; ".join(filter(None, (_caution(connection, names), others_in_words(directory, settings))))
        lock(connection)
        found = connection.execute(asked.query, dict(asked.parameters) or None)
        columns = tuple(each[0] for each in found.description)
        yield Answer(columns, _rows(found), caution)


def numbers_where(directory: CrawlDirectory, settings: Settings, condition: str) -> Iterator[int]:
    """Numbers of URLs of whose captures an SQL condition is true, in order; raises as `ask` does."""
    query = f"SELECT DISTINCT id FROM {CAPTURES} WHERE ({condition}\n) AND id IS NOT NULL ORDER BY id"  # noqa: S608
    with ask(directory, settings, Question(query, {})) as answer:
        for (number,) in answer.rows:
            yield number


def plain(value: Any) -> Any:
    """A value of an answer as JSON can hold it."""
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case dict():
            return {str(name): plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [plain(inner) for inner in value]
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return value.hex()
        case Decimal():
            return float(value)
        case _:
            return str(value)


def _caution(connection: Any, names: set[str]) -> str:
    """Without its parser the table of links is empty, and a question about it would seem to be answered."""
    if not names & LINKED or connection.execute("SELECT 1 FROM parses WHERE parser = 'links' LIMIT 1").fetchall():
        return ""
    return "no links were read yet: crawlspace reparse DIR --parser links"


def _rows(found: Any) -> Iterator[tuple[Any, ...]]:
    while rows := found.fetchmany(_AT_ONCE):
        yield from rows


def _add_tables(
    connection: Any, directory: CrawlDirectory, settings: Settings, rules: Rules, names: set[str]
) -> None:
    found = [each.captures for each in (directory, *directory.beside)]
    tables = [each for each in found if each.is_dir() and any(each.glob("date=*/bucket=*/*.parquet"))]
    shared = directory.shared.exists()
    if OUTCOMES in names or (CAPTURES in names and (shared or not tables)):
        _add_outcomes(connection, directory, settings, rules)
    if CAPTURES not in names:
        return
    if tables:
        import pyarrow.dataset as ds

        parts = [ds.dataset(str(each), format="parquet", partitioning="hive") for each in tables]
        connection.register("captures_", ds.dataset(parts))
        connection.execute(_TABLES["captures_of_some" if shared else "captures"])
    else:
        connection.execute(_TABLES["captured"])


def _add_outcomes(connection: Any, directory: CrawlDirectory, settings: Settings, rules: Rules) -> None:
    """Each URL that is known, as it was at one moment."""
    with open_snapshot(directory, settings) as snapshot:
        stories = snapshot.stories(frozenset(UrlState))
        first = True
        while batch := list(islice(stories, _AT_ONCE)):
            connection.register("batch", _outcomes(batch, rules))
            how = f"CREATE TABLE {OUTCOMES} AS" if first else f"INSERT INTO {OUTCOMES}"
            connection.execute(f"{how} FROM batch")
            first = False
        if first:
            connection.register("batch", _outcomes([], rules))
            connection.execute(f"CREATE TABLE {OUTCOMES} AS FROM batch")
    connection.unregister("batch")


def _outcomes(stories: Sequence[Story], rules: Rules) -> Any:
    pa = arrow()
    canonical = rules.canonical([story.url for story in stories])
    rows = [_outcome(story, form) for story, form in zip(stories, canonical, strict=True)]
    when = pa.timestamp("ms", "UTC")
    kinds = {
        **{name: pa.int64() for name in ("id", "parent_id", "size", "elapsed_ms", "offset", "length")},
        **{name: pa.int32() for name in ("depth", "hops", "attempts", "generation", "status")},
        **dict.fromkeys(("found_at", "settled_at", "requested_at", "due"), when),
    }
    return pa.table({name: pa.array([row[name] for row in rows], kinds.get(name, pa.string())) for name in _COLUMNS})


def _outcome(story: Story, canonical: str | None) -> dict[str, Any]:
    found = story.evidence
    file, offset, length = found.pointer if found is not None and found.pointer is not None else (None, None, None)
    return {
        "id": story.id,
        "url": story.url,
        "canonical": canonical,
        "host": story.host,
        "state": story.state.name.lower(),
        "reason": story.reason,
        "detail": story.detail or None,
        "status": found.status if found else None,
        "mime": found.mime if found else None,
        "size": found.size if found else None,
        "elapsed_ms": found.elapsed_ms if found else None,
        "digest": found.digest.hex() if found and found.digest else None,
        "depth": story.depth,
        "hops": story.hops,
        "parent": story.parent,
        "relation": story.relation.value,
        "attempts": story.attempts,
        "found_at": story.found_at,
        "settled_at": story.settled_at,
        "requested_at": found.at if found else None,
        "target": story.target,
        "copy_of": story.copy_of,
        "label": story.label,
        "meta": story.meta,
        "generation": story.generation,
        "file": file,
        "offset": offset,
        "length": length,
    }


_COLUMNS = (
    *(
        "id",
        "url",
        "canonical",
        "host",
        "state",
        "reason",
        "detail",
        "status",
        "mime",
        "size",
        "elapsed_ms",
        "digest",
    ),
    *("depth", "hops", "parent", "relation", "attempts", "found_at", "settled_at", "requested_at", "target"),
    *("copy_of", "label", "meta", "generation", "file", "offset", "length"),
)
