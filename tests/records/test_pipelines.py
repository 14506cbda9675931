"""Stages between parsers and what is kept: the same while crawling and when captures are parsed again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.parsing import load_parser
from crawlspace.app.piping import piped, piping
from crawlspace.app.reparse import Order, Reparsed, reparse
from crawlspace.app.sql import Question, ask
from crawlspace.cli.options import settings_used
from crawlspace.errors import UsageError
from crawlspace.events import Warned
from crawlspace.exchange import FetchResult
from crawlspace.parsers import Document, Item, Parser, parser
from crawlspace.parsers.settings import ParserSettings
from crawlspace.settings import Settings

Pack = Callable[..., CrawlDirectory]

STAGES = """
from crawlspace import Drop

marks = []


class Counted:
    def __enter__(self):
        marks.append("begun")

    def __exit__(self, *failure):
        marks.append("ended")

    def __call__(self, item):
        item["data"]["seen"] = item["parser"] + " " + item["version"]
        return item


def odd(item):
    number = int(item["url"].rpartition("/")[2])
    return item if number % 2 else Drop("even")


def broken(item):
    raise KeyError("price")


def bare(item):
    return {"url": item["url"]}


def nothing(item):
    return {**item, "data": None}
"""
PARSER = """
from crawlspace.parsers import parser


@parser("titles", 1, key="title")
def titles(page):
    return {"title": page.title}
"""


def pages(count: int) -> list[Any]:
    return [
        SimpleNamespace(
            url=f"http://a.test/{n}", body=b"<title>%d</title>" % n, type="text/html", at=1_760_000_000_000
        )
        for n in range(count)
    ]


@pytest.fixture
def stages(tmp_path: Path) -> Path:
    (tmp_path / "stages.py").write_text(STAGES)
    return tmp_path


def document(number: int) -> Document:
    return Document(FetchResult(f"http://a.test/{number}", 1, status=200, body=b""))


def settings(*names: str) -> ParserSettings:
    return ParserSettings(pipelines=tuple(f"stages.py:{name}" for name in names))


@parser("two", 1, key="n")
def two(page: Document) -> Iterator[object]:
    yield {"n": 1}
    yield Item({"n": 2}, key="own", twins=("http://a.test/api",))


def ran(given: Parser, number: int) -> list[tuple[str | None, bytes]]:
    parsed = given.run(document(number))
    assert parsed is not None
    assert parsed.error is None
    return [(each.key, each.data) for each in parsed.records]


def test_a_stage_changes_records_or_drops_them_with_a_reason(stages: Path) -> None:
    with piped([two], settings("Counted", "odd"), stages) as way:
        changed, dropped = ran(way.parsers[0], 1), ran(way.parsers[0], 2)
    assert [data for _, data in changed] == [b'{"n":1,"seen":"two 1"}', b'{"n":2,"seen":"two 1"}']
    assert [key for key, _ in changed] == [key for key, _ in ran(two, 1)]
    assert dropped == []
    assert way.dropped == {"even": 2}


def test_what_is_said_of_a_record_beside_its_data_stays(stages: Path) -> None:
    with piped([two], settings("Counted"), stages) as way:
        parsed = way.parsers[0].run(document(1))
    assert parsed is not None
    assert [each.twins for each in parsed.records] == [(), ("http://a.test/api",)]


@pytest.mark.parametrize(
    ("stage", "why"),
    [
        ("broken", "KeyError: 'price'"),
        ("bare", "without 'data'"),
        ("nothing", "has no named fields"),
    ],
)
def test_a_stage_that_fails_is_the_failure_of_the_parser_on_that_page(stages: Path, stage: str, why: str) -> None:
    with piped([two], settings(stage), stages) as way:
        parsed = way.parsers[0].run(document(1))
    assert parsed is not None
    assert parsed.records == ()
    assert why in (parsed.error or "")


def test_without_stages_parsers_stay_as_they_are(tmp_path: Path) -> None:
    given = [two]
    with piped(given, ParserSettings(), tmp_path) as way:
        assert way.parsers is given


def test_a_stage_that_is_not_there_is_told(stages: Path) -> None:
    with pytest.raises(UsageError, match="no 'absent'"), piped([two], settings("absent"), stages):
        pass


def test_a_reader_tells_at_its_end_what_was_dropped_also_when_it_fails(stages: Path) -> None:
    told: list[Warned] = []
    reader = SimpleNamespace(parsers=[two])

    async def read() -> None:
        async with piping(reader, settings("odd"), stages, told.append):
            reader.parsers[0].run(document(4))
            raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        asyncio.run(read())
    assert [each.message for each in told] == ["2 records were dropped by the pipeline: even"]


def test_parsing_again_sends_records_through_the_stages_too(pack: Pack) -> None:
    place = pack(pages(7), parsers__pipelines=["stages.py:odd", "stages.py:Counted"])
    (place.path / "stages.py").write_text(STAGES)
    (place.path / "mine.py").write_text(PARSER)
    done = reparse(place, settings_used(place), Order(load_parser("mine.py:titles", place.path), "mine.py:titles"))
    assert (done.parsed, done.records, done.failed) == (7, 3, 0)
    assert done.dropped == {"even": 4}
    assert titles(place, settings_used(place)) == ["1", "3", "5"]


def titles(place: CrawlDirectory, used: Settings) -> list[str]:
    question = Question("SELECT json_extract_string(data, '/title') AS t FROM records ORDER BY t", {})
    with ask(place, used, question) as answer:
        return [row[0] for row in answer.rows]


def test_reasons_of_batches_add_up() -> None:
    from crawlspace.app.reparsing.batch import Batch

    done = Reparsed()
    for _ in range(2):
        batch = Batch()
        batch.dropped["even"] += 3
        done.see(batch)
    assert done.dropped == {"even": 6}
