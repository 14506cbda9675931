"""Stages between rows and a file: each may change an item or drop it, and nothing is lost in silence."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from crawlspace import Crawl
from crawlspace.errors import UsageError
from crawlspace.exports.pipeline import OTHER, REASONS_KEPT, Drop, Item, Pipeline, StageFailed

Command = Callable[..., Any]

STAGES = """
from crawlspace import Drop

def no_redirects(item):
    return Drop("redirect") if item["state"] == "redirected" else item

def shout(item):
    return item | {"url": item["url"].upper()}

class Counter:
    columns = ("number", "more")

    def __init__(self):
        self.n = 0

    def __call__(self, item):
        self.n += 1
        item["number"] = self.n
        item["more"] = {"meta": item["meta"]}
        return item

def log(text):
    with open("log.txt", "a") as file:
        file.write(text + "\\n")

class Log:
    def __enter__(self):
        log("begin")

    def __exit__(self, *failure):
        log("end")

    def __call__(self, item):
        log("item")
        return item

def forgets(item):
    if item["state"] == "dead":
        raise ValueError("dead")
    if item["state"] == "stored":
        return None
    return item

def not_at_all(item):
    return 1 / 0

def new_name(item):
    return item | {"extra": 1}

def wrong_kind(item):
    return item | {"size": "large"}

def no_json(item):
    return item | {"meta": object()}
"""


@pytest.fixture
def export(crawlspace: Command, crawl: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """`crawlspace export` to a file of this name, with the stages of these names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stages.py").write_text(STAGES)

    def run(name: str, *stages: str, options: tuple[str, ...] = ()) -> Any:
        given = [word for stage in stages for word in ("--pipeline", f"stages.py:{stage}")]
        return crawlspace("export", crawl, "-o", name, *given, *options)

    return run


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(name).read_bytes().splitlines()]


def test_stages_change_and_drop_items_in_their_order(export: Callable[..., Any]) -> None:
    export("all.jsonl")
    ran = export("a.jsonl", "no_redirects", "shout", "Counter", options=("--json",))
    kept = [row for row in rows("all.jsonl") if row["state"] != "redirected"]
    assert json.loads(ran.out) == {
        "rows": len(kept),
        "damaged": 0,
        "damages": [],
        "dropped": {"redirect": 1},
        "failed": 0,
    }
    found = rows("a.jsonl")
    assert [row["url"] for row in found] == [row["url"].upper() for row in kept]
    assert [row["number"] for row in found] == [*range(1, len(kept) + 1)]
    assert [row["more"] for row in found] == [{"meta": row["meta"]} for row in kept]


def test_what_was_dropped_is_told_by_reason(export: Callable[..., Any]) -> None:
    assert "dropped 1: redirect" in export("a.jsonl", "no_redirects").err


def test_a_table_has_the_columns_that_stages_name(export: Callable[..., Any]) -> None:
    assert export("a.csv", "Counter", options=("--raw",)).code == 0
    assert export("a.parquet", "Counter").code == 0
    first = next(csv.DictReader(io.StringIO(Path("a.csv").read_text(), newline="")))
    columnar = parquet.read_table("a.parquet").to_pylist()[0]
    assert first["number"] == columnar["number"] == "1"
    assert json.loads(first["more"]) == json.loads(columnar["more"])


def test_a_stage_is_entered_once_and_left_at_the_end(export: Callable[..., Any]) -> None:
    ran = export("a.txt", "Log")
    lines = Path("log.txt").read_text().split()
    assert lines == ["begin", *["item"] * (len(lines) - 2), "end"]
    assert f"{len(lines) - 2} urls" in ran.out


def test_an_item_on_which_a_stage_fails_is_told_and_the_others_go_on(export: Callable[..., Any]) -> None:
    export("all.jsonl")
    ran = export("a.jsonl", "forgets", options=("--json",))
    told = json.loads(ran.out)
    assert (ran.code, told["failed"], told["damaged"]) == (1, 2, 0)
    assert sorted(told["damages"]) == [
        "http://c.test/dead: the stage forgets: ValueError: dead",
        "http://c.test/stored: the stage forgets returned NoneType, neither an item nor a Drop",
    ]
    assert told["rows"] == len(rows("all.jsonl")) - 2


@pytest.mark.parametrize(
    ("name", "stage", "told"),
    [
        ("a.csv", "new_name", "the pipeline adds 'extra'"),
        ("a.parquet", "wrong_kind", "left str in the column size"),
        ("a.jsonl", "no_json", "is not JSON"),
        ("a.csv", "no_json", "is not JSON"),
    ],
)
def test_what_a_table_cannot_hold_is_said_and_leaves_no_file(
    export: Callable[..., Any], name: str, stage: str, told: str
) -> None:
    ran = export(name, stage)
    assert (ran.code, told in ran.err) == (2, True), ran.err
    assert not Path(name).exists()


def test_json_lines_take_whatever_names_an_item_has(export: Callable[..., Any]) -> None:
    export("a.jsonl", "new_name")
    assert {row["extra"] for row in rows("a.jsonl")} == {1}


def test_reasons_are_counted_in_bounded_memory() -> None:
    with Pipeline([lambda item: Drop(item["why"])]) as pipeline:
        for number in range(REASONS_KEPT + 5):
            assert pipeline.run({"why": f"reason {number}"}) is None
        assert pipeline.run({"why": "x" * 5000}) is None
        assert pipeline.run({"why": ""}) is None
    assert len(pipeline.dropped) == REASONS_KEPT + 1
    assert pipeline.dropped[OTHER] == 7
    assert pipeline.dropped.total() == REASONS_KEPT + 7


def test_what_cannot_be_called_is_no_stage() -> None:
    class Silent:
        pass

    with pytest.raises(UsageError, match="Silent is no stage"), Pipeline([Silent]):  # type: ignore[list-item]
        pass


def test_a_stage_that_fails_closes_those_that_were_opened() -> None:
    closed: list[str] = []

    class Opened:
        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None:
            closed.append("closed")

        def __call__(self, item: Item) -> Item:
            raise KeyError("x")

    with pytest.raises(StageFailed, match="KeyError"), Pipeline([Opened()]) as pipeline:
        pipeline.run({})
    assert closed == ["closed"]


def test_the_same_from_python(crawl: Path, tmp_path: Path) -> None:
    def named(item: Item) -> Item | Drop:
        return {"u": item["url"]} if item["mime"] else Drop("no type")

    made = Crawl(crawl)
    target = tmp_path / "out.jsonl.gz"
    done = made.export(target, pipeline=[named], states=["done"], host="a.test")
    assert (done.rows, done.dropped.total()) == (2, 0)
    assert target.exists()
    with pytest.raises(UsageError, match="is there already"):
        made.export(target)
    assert made.export(tmp_path / "out.txt", "captures").rows > 2
    for options in ({"what": "dreams"}, {"states": ["lost"]}, {"format": "xls"}, {"colour": "red"}):
        with pytest.raises(UsageError):
            made.export(tmp_path / "new.csv", **options)


def test_of_many_damages_some_are_named_to_people(
    export: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawlspace.cli.options.DAMAGES_TOLD", 3)
    ran = export("a.txt", "not_at_all")
    assert ran.code == 1
    *named, rest = ran.err.splitlines()
    assert [line.partition(": ")[2] for line in named] == [
        "the stage not_at_all: ZeroDivisionError: division by zero"
    ] * 3
    assert rest.startswith("and ")
