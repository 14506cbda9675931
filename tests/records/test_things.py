"""What records come to: what counts, things with their history, sightings, twins; folded or not, the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from crawlspace.errors import StoreDamaged, UsageError
from crawlspace.parsers import Item, Parsed
from crawlspace.parsers.records import PAGE_KEY, Keying, records_of
from crawlspace.records import Records, Rules, fold, views
from crawlspace.records import fold as folding
from crawlspace.records.entries import again_line, line_of, void_line
from crawlspace.records.manifest import read_manifest
from crawlspace.types import Captured, Pointer
from crawlspace.urls import canonicalize_many

RULES = Rules("strict", canonicalize_many)
LOOSE = Rules("loose", lambda urls: [form and form.replace("www.", "") for form in canonicalize_many(urls)])
SKU = Keying(("sku",), significant=("price",))


def told(
    number: int,
    at: int,
    *data: object,
    url: str | None = None,
    generation: int = 0,
    version: str = "1",
    keying: Keying = SKU,
) -> bytes:
    """The line of a capture at which a parser found these."""
    captured = Captured(number, generation, url or f"http://a.test/{number}", pointer(number, generation), at)
    records = records_of(list(data), keying, "a.test")
    return line_of(captured, Parsed("p", version, records, significant=keying.significant))


def pointer(number: int, generation: int = 0) -> Pointer:
    return Pointer("f.warc.gz", number * 1000 + generation, 10)


class Told:
    """Lines that were written, and what they come to."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def write(self, *lines: bytes) -> None:
        records = Records(self.directory)
        records.write_lines(lines)
        records.seal()

    def ask(self, query: str, rules: Rules = RULES, reach: dict[str, int] | None = None) -> list[tuple[Any, ...]]:
        connection = views.connect(self.directory, rules)
        views.add_records(connection, [self.directory], rules, reach)
        views.lock(connection)
        rows: list[tuple[Any, ...]] = connection.execute(query).fetchall()
        connection.close()
        return rows


@pytest.fixture(params=["half"])
def tell(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Told]:
    """Writes lines; some or all of them are folded, which must make no difference."""

    def make(*lines: bytes) -> Told:
        store = Told(tmp_path / "records")
        half = len(lines) // 2 if request.param == "half" else len(lines)
        store.write(*lines[:half])
        if request.param != "journal":
            fold(store.directory, RULES)
        if lines[half:]:
            store.write(*lines[half:])
        return store

    return make


def test_of_a_capture_the_last_word_counts_and_replaces_all_before(tell: Callable[..., Told]) -> None:
    store = tell(
        told(1, 10, {"sku": 1, "price": 3}, {"sku": 2, "price": 4}),
        told(2, 10, {"sku": 3, "price": 3}),
        told(1, 10, {"sku": 1, "price": 5}, version="2"),
        told(2, 10, version="2"),
    )
    assert store.ask("SELECT id, version, data FROM observations") == [(1, "2", '{"price":5,"sku":1}')]
    assert store.ask("SELECT id, version, records FROM parses ORDER BY id") == [(1, "2", 1), (2, "2", 0)]


def test_a_line_that_comes_twice_counts_once(tell: Callable[..., Told]) -> None:
    line = told(1, 10, {"sku": 1, "price": 3}, {"sku": 1, "price": 3})
    store = tell(line, line)
    assert store.ask("SELECT count(*) FROM observations") == [(2,)]
    assert store.ask("SELECT count(*) FROM records") == [(1,)]


def test_a_capture_that_does_not_count_gives_way_to_the_one_before(tell: Callable[..., Told]) -> None:
    late = Captured(1, 0, "http://a.test/1", Pointer("f.warc.gz", 5, 10), 20)
    store = tell(
        told(1, 10, {"sku": 1, "price": 3}),
        line_of(late, Parsed("p", "1", records_of({"sku": 1, "price": 9}, SKU, "a.test"))),
        void_line(late),
    )
    assert store.ask("SELECT data FROM observations") == [('{"price":3,"sku":1}',)]


def test_the_newest_observation_wins_and_history_is_kept_field_by_field(tell: Callable[..., Told]) -> None:
    store = tell(
        told(1, 1000, {"sku": 1, "price": 3, "a~/b": 1}),
        told(1, 3000, {"sku": 1, "price": 4, "a~/b": 1}, generation=2),
        told(1, 2000, {"sku": 1, "price": 3, "a~/b": 2, "new": None}, generation=1),
        told(1, 4000, {"sku": 1, "price": 4, "a~/b": 1}, generation=3),
    )
    [row] = store.ask(
        "SELECT data, epoch_ms(first_seen), epoch_ms(last_seen), epoch_ms(changed_at), forms, pages FROM records"
    )
    assert row == ('{"a~/b":1,"price":4,"sku":1}', 1000, 4000, 3000, 3, 1)
    history = store.ask("SELECT epoch_ms(fetched_at), is_new, changed, is_significant FROM history ORDER BY 1")
    assert history == [
        (1000, True, [], False),
        (2000, False, ["a~/b", "new"], False),
        (3000, False, ["a~/b", "new", "price"], True),
    ]


def again(number: int, generation: int, at: int) -> Captured:
    """A visit of a URL that was answered with 304."""
    return Captured(number, generation, f"http://a.test/{number}", Pointer("g.warc.gz", at, 10), at)


def test_a_visit_that_found_a_page_as_it_was_has_seen_its_records(tell: Callable[..., Told]) -> None:
    """Those of the capture before it, not those of captures that came later; one that did not count has seen none."""
    store = tell(
        again_line(again(1, 1, 1500)),
        told(1, 1000, {"sku": 1, "price": 3}),
        told(1, 3000, {"sku": 1, "price": 4}, generation=3),
        told(2, 1000, {"sku": 2, "price": 4}),
        again_line(again(1, 2, 2000)),
        again_line(again(3, 2, 9000)),
        again_line(again(2, 1, 5000)),
        void_line(again(2, 1, 5000)),
    )
    seen = "epoch_ms(first_seen), epoch_ms(last_seen), epoch_ms(changed_at) FROM records ORDER BY identity"
    assert store.ask(f"SELECT {seen}") == [(1000, 3000, 3000), (1000, 1000, 1000)]
    price = (
        "SELECT data->>'$.price', epoch_ms(last_seen), times FROM sightings WHERE identity LIKE '%[1]%' ORDER BY 1"
    )
    assert store.ask(price) == [("3", 2000, 1), ("4", 3000, 1)]
    store.write(again_line(again(1, 4, 4000)), again_line(again(2, 2, 4500)))
    fold(store.directory, RULES, tidy=True)
    assert store.ask(f"SELECT {seen}") == [(1000, 4000, 3000), (1000, 4500, 1000)]
    assert store.ask("SELECT count(*) FROM history") == [(3,)]
    assert store.ask("SELECT count(*) FROM parses") == [(3,)]


def test_what_was_found_as_it_was_need_not_be_parsed_again(tell: Callable[..., Told]) -> None:
    """The parser has read the bytes that still hold; of what it never read nothing is told."""
    store = tell(
        told(1, 1000, {"sku": 1}),
        told(2, 1000, {"sku": 2}),
        again_line(again(1, 2, 2000)),
        again_line(again(3, 1, 9)),
    )
    read = [row[:3] for row in views.parsed(store.directory, RULES, "p")]
    assert read == [(1, 0, "1"), (1, 2, "1"), (2, 0, "1")]
    assert list(views.parsed(store.directory, RULES, "other")) == []


def test_copies_on_several_pages_are_one_thing_with_all_its_sightings(tell: Callable[..., Told]) -> None:
    offer = {"sku": 1, "price": 3}
    store = tell(told(1, 10, offer), told(2, 20, offer), told(1, 30, offer, generation=1))
    assert store.ask("SELECT pages, seen_on, forms FROM records") == [(2, ["http://a.test/1", "http://a.test/2"], 1)]
    assert store.ask("SELECT canonical, times FROM sightings ORDER BY 1") == [
        ("http://a.test/1", 2),
        ("http://a.test/2", 1),
    ]


def test_a_page_and_its_twin_are_linked_and_not_merged(tell: Callable[..., Told]) -> None:
    per_page = Keying((PAGE_KEY,))
    store = tell(
        told(1, 10, Item({"t": 1}, twins=("http://a.test/2?utm_source=x",)), keying=per_page),
        told(2, 10, {"t": 1}, keying=per_page),
    )
    assert store.ask("SELECT page, twin FROM twins") == [("http://a.test/1", "http://a.test/2")]
    assert store.ask("SELECT count(*) FROM records") == [(2,)]


def test_other_url_rules_orphan_no_record(tell: Callable[..., Told]) -> None:
    per_page = Keying((PAGE_KEY,))
    store = tell(
        told(1, 10, {"t": 1}, url="http://www.a.test/", keying=per_page),
        told(2, 20, {"t": 2}, url="http://a.test/", keying=per_page),
    )
    assert store.ask("SELECT count(*) FROM records") == [(2,)]
    merged = [("http://a.test/", 2, '{"t":2}')]
    assert store.ask("SELECT canonical, forms, data FROM records", LOOSE) == merged
    fold(store.directory, LOOSE, tidy=True)
    assert {part.rules for part in read_manifest(store.directory).parts} <= {"loose"}
    assert store.ask("SELECT canonical, forms, data FROM records", LOOSE) == merged
    assert store.ask("SELECT count(*) FROM records") == [(2,)]


def test_what_lies_beyond_the_settled_part_of_the_archive_does_not_count_yet(tmp_path: Path) -> None:
    store = Told(tmp_path)
    records = Records(tmp_path)
    records.write_lines([told(1, 10, {"sku": 1, "price": 1}), told(2, 10, {"sku": 2, "price": 1})])
    assert store.ask("SELECT id FROM observations", reach={"f.warc.gz": 1500}) == [(1,)]
    records.seal()
    assert store.ask("SELECT count(*) FROM observations", reach={"f.warc.gz": 1500}) == [(2,)]


def many(store: Told, rounds: int) -> None:
    for version in range(rounds):
        store.write(*[told(n, 10, {"sku": n, "price": version}, version=str(version + 1)) for n in range(20)])
        fold(store.directory, RULES, tidy=True)


def test_parts_stay_few_and_hold_little_that_was_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding_module(), "FAN", 3)
    store = Told(tmp_path)
    many(store, 4)
    parts = read_manifest(tmp_path).parts
    assert len(parts) < 3
    assert sum(part.rows for part in parts) <= 40
    assert store.ask("SELECT count(*), min(version), max(version) FROM observations") == [(20, "4", "4")]
    names = {part.file for part in parts} | set(read_manifest(tmp_path).dropped)
    assert {path.name for path in tmp_path.glob("part-*")} <= names


@pytest.mark.parametrize("step", [0, 2, 3, 4])
def test_a_fold_that_is_killed_is_begun_again_and_ends_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    store = Told(tmp_path)
    store.write(*[told(n, 10, {"sku": n, "price": 1}) for n in range(5)])
    fold(tmp_path, RULES)
    store.write(*[told(n, 10, {"sku": n, "price": 2}, version="2") for n in range(5)])
    expected = store.ask("SELECT id, data FROM observations ORDER BY id")
    left = iter(range(step))

    class Killed(BaseException):
        """The process dies here."""

    def dying(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            if next(left, None) is None:
                raise Killed
            return original(*arguments, **named)

        return wrapped

    with monkeypatch.context() as deadly:
        for name in ("write_manifest", "path_of", "_write", "_merge_level"):
            deadly.setattr(folding_module(), name, dying(getattr(folding_module(), name)))
        with pytest.raises(Killed):
            fold(tmp_path, RULES, tidy=True)
    assert store.ask("SELECT id, data FROM observations ORDER BY id") == expected
    fold(tmp_path, RULES, tidy=True)
    assert store.ask("SELECT id, data FROM observations ORDER BY id") == expected
    assert sum(part.rows for part in read_manifest(tmp_path).parts) <= 10


def folding_module() -> Any:
    import sys

    return sys.modules["crawlspace.records.fold"]


def test_only_one_folds_at_a_time(tmp_path: Path) -> None:
    Told(tmp_path).write(told(1, 10, {"sku": 1, "price": 1}))
    with folding_module()._alone(tmp_path) as mine:
        assert mine
        assert folding(tmp_path, RULES).journals == 0
    assert folding(tmp_path, RULES).journals == 1


def test_a_part_that_is_gone_is_told(tmp_path: Path) -> None:
    store = Told(tmp_path)
    store.write(told(1, 10, {"sku": 1, "price": 1}))
    fold(tmp_path, RULES)
    for path in tmp_path.glob("part-*"):
        path.unlink()
    with pytest.raises(StoreDamaged, match="is gone"):
        store.ask("SELECT 1")


LOCKED: Sequence[str] = (
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM glob('/*')",
    "SELECT * FROM read_parquet('http://127.0.0.1/x')",
    "COPY (SELECT 1) TO '/tmp/crawlspace-was-here.csv'",
    "ATTACH '/tmp/crawlspace-was-here.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "SET memory_limit = '10GB'",
)


def test_a_question_reaches_nothing_outside(tmp_path: Path) -> None:
    connection = views.connect(tmp_path, RULES)
    views.add_records(connection, [tmp_path], RULES)
    views.lock(connection)
    for query in LOCKED:
        with pytest.raises(UsageError, match="no answer"), views.errors():
            connection.execute(query)
