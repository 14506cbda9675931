"""The PostgreSQL frontier keeps the contract of re-keying, and lets nobody else write meanwhile."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from msgspec.structs import replace
from psycopg.rows import dict_row

from crawlspace import events
from crawlspace.app.compose import OpenCrawl, Plan, open_crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.fleet import driven
from crawlspace.app.learn import run_learning
from crawlspace.app.rekey import apply, offer_own
from crawlspace.app.store import open_beside, open_store, place_of
from crawlspace.clock import SystemClock
from crawlspace.engine.intake import Request
from crawlspace.errors import OthersAtWork, Rekeyed
from crawlspace.events import Ending
from crawlspace.exchange import Capture, Headers
from crawlspace.frontier.postgres import Place, PostgresFrontier, rekey
from crawlspace.frontier.postgres.fence import FACT
from crawlspace.frontier.rekeying import DONE, Progress
from crawlspace.pages.links import read_page
from crawlspace.settings import Settings, convert, nested
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.rekey_contract import RULES, RekeyContract, Tables
from crawlspace.testing.rekey_stores import T0, fill, settings_with
from crawlspace.types import Address, Answer, Claim, Evidence, Finished, QueuedUrl, Released, Wish, host_id

URLS = 400
PAGES, TURN = 42, 28
YEAR = 365 * 86_400_000


@contextmanager
def connected(place: Place) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    with psycopg.connect(place.address, autocommit=True, row_factory=dict_row) as connection:
        connection.execute("SELECT set_config('search_path', %s, false)", [place.schema])
        yield connection


def made(path: Path, place: Place, urls: int = URLS, seed: int = 1, **identity: Any) -> CrawlDirectory:
    """A crawl on the store at a place, as a killed one leaves it."""
    crawl = CrawlDirectory(path)
    crawl.create()
    settings = settings_with(**identity)
    address = f"{place.address}&schema={place.schema}&shards={place.shards}"

    async def run() -> None:
        opened = await open_store(crawl, settings.frontier(), ManualClock(T0), address)
        try:
            await fill(crawl, opened.store, settings, (urls, seed))
        finally:
            await opened.store.close()

    asyncio.run(run())
    return crawl


class TestShared(RekeyContract):
    @pytest.fixture(autouse=True)
    def _places(self, places: Callable[..., Place]) -> None:
        self.places = places

    def make(self, path: Path) -> CrawlDirectory:
        return made(path, self.places(16))

    @pytest.mark.parametrize("rules", [RULES[0], RULES[3]], ids=str)
    def test_of_each_group_the_best_state_stays_and_the_others_are_kept_as_they_were(
        self, tmp_path: Path, rules: dict[str, Any]
    ) -> None:
        super().test_of_each_group_the_best_state_stays_and_the_others_are_kept_as_they_were(tmp_path, rules)

    @pytest.mark.parametrize(("holds", "after"), [((None, "paused"), "paused"), (("blocked", "paused"), "blocked")])
    def test_what_a_person_holds_stays_held_when_hosts_merge(
        self, tmp_path: Path, holds: tuple[str | None, str | None], after: str
    ) -> None:
        super().test_what_a_person_holds_stays_held_when_hosts_merge(tmp_path, holds, after)

    def tables(self, crawl: CrawlDirectory) -> Tables:
        with connected(place_of(crawl)) as database:
            asked = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
            names = [row["tablename"] for row in database.execute(asked)]
            tables = {name: [plain(row) for row in database.execute(f"SELECT * FROM {name}")] for name in names}
        totals = tables["content_total"]
        tables["content_total"] = [{"name": name, "n": sum(row[name] for row in totals)} for name in totals[0]]
        return tables

    def alter(self, crawl: CrawlDirectory, table: str, where: dict[str, Any], **fields: Any) -> int:
        changed = ", ".join(f"{name} = %s" for name in fields)
        [(name, value)] = where.items()
        with connected(place_of(crawl)) as database:
            order = f"UPDATE {table} SET {changed} WHERE {name} = %s"
            return database.execute(order.encode(), (*fields.values(), value)).rowcount

    def audit(self, crawl: CrawlDirectory) -> None:
        async def look() -> list[str]:
            store = await open_beside(crawl, settings_with().frontier(), ManualClock(T0))
            try:
                assert isinstance(store, PostgresFrontier)
                return await store.audit()
            finally:
                await store.close()

        # A loop may run here already: whoever re-keys is asked between two steps.
        with ThreadPoolExecutor(1) as thread:
            assert thread.submit(lambda: asyncio.run(look())).result() == []


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """Keys as bytes; shards come and go with the hosts."""
    return {name: value.bytes if isinstance(value, UUID) else value for name, value in row.items() if name != "shard"}


def copied(crawl: CrawlDirectory, path: Path, place: Place) -> CrawlDirectory:
    """The same crawl on a store of its own."""
    shutil.copytree(crawl.path, path)
    copy, old = CrawlDirectory(path), place_of(crawl)
    text = copy.shared.read_text().replace(f"schema={old.schema}", f"schema={place.schema}")
    copy.shared.write_text(text)

    async def make() -> None:
        await (await open_store(copy, settings_with().frontier(), ManualClock(T0))).store.close()

    asyncio.run(make())
    with connected(place) as database:
        database.execute("SET session_replication_role = replica")  # no trigger counts what is counted already
        columns = """
            SELECT table_name, string_agg(quote_ident(column_name), ', ') AS names FROM information_schema.columns
            WHERE table_schema = %s AND is_generated = 'NEVER' GROUP BY table_name
        """
        for table, names in [tuple(row.values()) for row in database.execute(columns, [old.schema])]:
            database.execute(f"DELETE FROM {table}")
            database.execute(
                f"INSERT INTO {table} ({names}) OVERRIDING SYSTEM VALUE SELECT {names} FROM {old.schema}.{table}"
            )
        database.execute(f"SELECT setval('url_number', (SELECT last_value FROM {old.schema}.url_number))")
    return copy


def contents(crawl: CrawlDirectory) -> dict[str, list[str]]:
    """All that a store holds, in order; sums where writers have slots of their own."""
    with connected(place_of(crawl)) as database:
        asked = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        names = sorted(row["tablename"] for row in database.execute(asked))
        sums = {
            "round": "SELECT generation, state, changed, sum(present), sum(past) FROM round GROUP BY 1, 2, 3",
            "tally": "SELECT sum(queued), sum(done), sum(dead), sum(skipped), sum(pages), sum(hosts) FROM tally",
            "content_total": "SELECT sum(exact), sum(near) FROM content_total",
        }
        told = {name: database.execute(sums.get(name, f"SELECT * FROM {name}").encode()).fetchall() for name in names}
    told["meta"] = [row for row in told["meta"] if row["key"] in ("rekey", "url_rules", "scope", "learned_rules")]
    return {name: sorted(map(repr, map(timeless, rows))) for name, rows in told.items()}


def timeless(row: dict[str, Any]) -> dict[str, Any]:
    """Without the moment at which a URL became known while the test ran."""
    return {name: "now" if name == "found_at" and value > T0 + YEAR else value for name, value in row.items()}


CHILD = """
import asyncio, sys
from pathlib import Path
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.rekey import apply
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.rekey_stores import T0, settings_with
def watch(_):
    print(flush=True)
asyncio.run(apply(CrawlDirectory(Path(sys.argv[1])), settings_with(policy=sys.argv[2]), ManualClock(T0), watch, 60))
"""


@pytest.mark.parametrize("back", [pytest.param(False, marks=pytest.mark.long), True])
def test_a_re_keying_that_is_killed_again_and_again_ends_like_one_that_was_not(
    tmp_path: Path, places: Callable[..., Place], back: bool
) -> None:
    """By the system, at moments of chance; finer rules part pages, and redirects are offered again."""
    crawl = made(tmp_path / "crawl", places(), 300)
    clock, chance = ManualClock(T0), random.Random(5)
    policy = "conservative" if back else "aggressive"
    # The leases of before are given up once, at the server's own time.
    asyncio.run(apply(crawl, settings_with(**({"policy": "aggressive"} if back else {})), clock, lambda _: None))
    whole = copied(crawl, tmp_path / "whole", places())
    steps: list[Progress] = []
    asyncio.run(apply(whole, settings_with(policy=policy), clock, steps.append, 60))
    command = [sys.executable, "-c", CHILD, str(crawl.path), policy]
    kills = 0
    while True:
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(len(steps) // 3):
                process.stdout.readline()
            with suppress(subprocess.TimeoutExpired):
                process.wait(chance.random() / 50)
            process.kill()
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
        kills += 1
    assert kills > 1
    assert contents(crawl) == contents(whole)


def test_workers_rest_when_they_are_asked_to_and_write_nothing_under_rules_of_before(
    tmp_path: Path, places: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = made(tmp_path / "c", places(), 100)
    place, settings = place_of(crawl), settings_with(policy="aggressive")
    wish = Wish(2, 3, 3, 60_000, 1_000_000)

    async def story() -> None:
        clock = SystemClock()
        other = await PostgresFrontier.open(place, settings.frontier(), clock, worker="other")
        try:
            [lease] = (await other.lease(replace(wish, worker=other.worker, hosts=1)))[:1]
            monkeypatch.setattr(rekey, "PATIENCE_SECONDS", 0)
            with pytest.raises(OthersAtWork, match="1 hosts of this crawl are being visited, by worker other"):
                await apply(crawl, settings, SystemClock(), lambda _: None)
            monkeypatch.setattr(rekey, "PATIENCE_SECONDS", 60)
            waiting = asyncio.create_task(apply(crawl, settings, SystemClock(), lambda _: None))
            wanted = replace(wish, worker=other.worker)
            while (await other.notes()).get(FACT, "0 0").endswith(" 0"):
                await clock.sleep(0.01)
            assert await other.lease(wanted) == []
            assert await other.due_in() is not None
            released = Released(lease.token, lease.host.hid, lease.host.pace)
            assert await other.settle([released], []) == [Answer.SETTLED]
            assert await waiting is not None
            for write in (other.reclaim(), other.lease(wanted), other.revive([1]), other.note({"a": "b"})):
                with pytest.raises(Rekeyed, match="taken to other URL rules"):
                    await write
        finally:
            await other.close()

    asyncio.run(story())


def test_one_process_re_keys_at_a_time(tmp_path: Path, places: Callable[..., Place]) -> None:
    crawl = made(tmp_path / "c", places(), 50)

    def watch(progress: Progress) -> None:
        if progress.stage == DONE:
            return
        again = CrawlDirectory(shutil.copytree(crawl.path, tmp_path / "again", dirs_exist_ok=True))
        with ThreadPoolExecutor(1) as thread, pytest.raises(OthersAtWork, match="another process re-keys this crawl"):
            thread.submit(
                lambda: asyncio.run(apply(again, settings_with(fold_www=True), ManualClock(T0), watch))
            ).result()

    assert asyncio.run(apply(crawl, settings_with(fold_www=True), ManualClock(T0), watch, 10_000)) is not None


def test_a_crawl_that_shares_its_frontier_applies_what_it_learns_and_undoes_what_was_wrong(
    tmp_path: Path, places: Callable[..., Place]
) -> None:
    """From one page on the parameter decides what a page says."""
    place = places()
    address = f"{place.address}&schema={place.schema}"
    told: list[str] = []
    with serving() as web:
        settings = convert(nested(web.settings()), "test")

        def watch(event: events.Event) -> None:
            if isinstance(event, events.Warned):
                told.append(event.message)

        async def drive(crawl: OpenCrawl) -> tuple[Ending, None]:
            await crawl.inject([Request("http://site.test/")])
            async with driven(crawl) as loop:
                return await loop.run(), None

        plan = Plan(settings, frontier=address, watch=watch)
        ending, _ = asyncio.run(run_learning(CrawlDirectory(tmp_path / "c"), plan, drive))
    assert ending is Ending.FINISHED
    assert told[0] == "learned rules: applying site.test param v"
    assert told[-1] == "learned rules: undoing site.test param v"
    assert set(web.asked) >= {f"/{n}?v={view}" for n in range(TURN, PAGES) for view in (1, 2)}
    held = web.asked[: min(web.asked.index(f"/{TURN}?v={view}") for view in (1, 2))]
    assert sum(f"/{n}?v=2" in held for n in range(2, TURN)) < TURN - 4, "while it held, pages were fetched once"


def test_pages_of_another_worker_are_read_again_by_that_worker(tmp_path: Path, places: Callable[..., Place]) -> None:
    """Where finer rules part pages: the spellings that were folded stand in its archive alone."""
    place = places()
    coarse, fine = settings_with(strip=["ref"]), settings_with()

    def known() -> set[str]:
        with connected(place) as database:
            return {row["url"] for row in database.execute("SELECT url FROM queue")}

    one, two = (CrawlDirectory(tmp_path / name) for name in ("one", "two"))
    for worker in (one, two):
        asyncio.run(fetched(worker, coarse, place))
    assert known() == {"http://one.test/a?ref=1", "http://two.test/a?ref=1"}
    done = asyncio.run(apply(one, fine, SystemClock(), lambda _: None))
    assert done is not None
    assert (done.parts, done.unreadable, done.found) == (True, 1, 1)
    assert known() == {"http://one.test/a?ref=1", "http://one.test/a", "http://two.test/a?ref=1"}
    assert asyncio.run(offer_own(one, fine, SystemClock())) is None
    assert asyncio.run(offer_own(two, coarse, SystemClock())) is None, "under these rules it does not crawl"
    assert asyncio.run(offer_own(two, fine, SystemClock())) == 1
    assert "http://two.test/a" in known()
    assert asyncio.run(offer_own(two, fine, SystemClock())) is None


async def fetched(worker: CrawlDirectory, settings: Settings, place: Place) -> None:
    """A worker has a page that leads to another in two spellings."""
    plan = Plan(settings, frontier=f"{place.address}&schema={place.schema}")
    async with open_crawl(worker, plan) as crawl:
        address = crawl.identity.identify(f"http://{worker.path.name}.test/")
        assert isinstance(address, Address)
        await crawl.frontier.claim([Claim(address, depth=1)])
        (story,) = await crawl.frontier.find([address.key])
        assert story is not None
        url, body = QueuedUrl(story.id, address.key, story.url, 5, 1), b"<a href=/a?ref=1></a><a href=/a></a>"
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body)
        capture = Capture(url.url, T0, 200, b"GET / HTTP/1.1\r\n\r\n", b"", head, body)
        evidence = Evidence(T0, 200, mime="text/html", pointer=await crawl.archive.append(capture))
        await crawl.archive.flush()
        page = read_page(body, url.url, Headers(((b"Content-Type", b"text/html"),)), settings.discovery)
        done = Finished(0, host_id(address.key), url, evidence)
        assert await crawl.frontier.adopt([done], crawl.intake.page(page, url)) == [True]


class Web(ThreadingHTTPServer):
    """Pages under two spellings, a chain of them."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []

    def settings(self) -> dict[str, Any]:
        return {
            "contact": "tests@crawlspace.test",
            "host.delay": 0.0,
            "scope.max_depth": 1000,
            "network.resolve": {"site.test:80": f"127.0.0.1:{self.server_port}"},
            "network.allow": ["127.0.0.1"],
            "learning.mode": "apply",
            "learning.checks": 3,
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        assert isinstance(self.server, Web)
        self.server.asked.append(self.path)
        found = re.fullmatch(r"/(\d*)(?:\?v=(\d))?", self.path)
        number, view = (int(found[1] or 0), found[2] or "") if found else (99, "")
        says = f"page {number}" + (f" view {view}" if number >= TURN else "")
        words = " ".join(random.Random(says).choices(WORDS, k=80))
        links = "".join(f'<a href="/{number + 1}?v={each}"></a>' for each in (1, 2)) if number < PAGES - 1 else ""
        body = f"<title>{says}</title><p>{words}</p>{links}".encode()
        self.send_response(404 if number >= PAGES else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""


WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "glade", "heath", "inlet", "jetty", "knoll", "ledge")


@contextmanager
def serving() -> Iterator[Web]:
    web = Web()
    thread = threading.Thread(target=web.serve_forever, daemon=True)
    thread.start()
    try:
        yield web
    finally:
        web.shutdown()
        web.server_close()
        thread.join(10)
