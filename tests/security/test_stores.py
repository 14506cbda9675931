"""Rows 15, 16, 19, 20 and 23 to 25: files, tables, statements, and whom a crawl could be turned against."""

from __future__ import annotations

import ast
import asyncio
import csv
import io
import re
import resource
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import crawlspace as package
from crawlspace.archive.disk import RealDisk
from crawlspace.archive.members import deflate
from crawlspace.archive.reader import Reader
from crawlspace.archive.record import encode
from crawlspace.clock import SystemClock
from crawlspace.errors import StoreDamaged
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.states import UrlState
from crawlspace.types import Claim, Unusable
from crawlspace.urls import Identity, IdentitySettings, policy_from

SOURCE = Path(package.__file__).parent
CAP = 1 << 20
EVIL_PATHS = [
    "/../../etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/..%2f..%2fetc%2fpasswd",
    "/%00",
    "/CON",
    "/a\\..\\b",
    "/" + "a" * 2000,
    "/x%0d%0aWARC-Type:%20response",
]


# -- row 15: paths ------------------------------------------------------------------------------------------------


def test_row_15_no_name_of_a_file_comes_from_the_web(web: Any, tmp_path: Path) -> None:
    before = set(tmp_path.rglob("*"))
    web.page("http://a.test/", *EVIL_PATHS)
    for path in EVIL_PATHS:
        web.put(f"http://a.test{path}", b"found", b'Content-Disposition: attachment; filename="../../evil"')
    web.crawl("http://a.test/")
    made = set(tmp_path.rglob("*")) - before
    assert all(path == web.directory or web.directory in path.parents for path in made)
    names = {path.relative_to(web.directory).as_posix() for path in made if path.is_file()}
    assert all(
        re.fullmatch(r"[a-z.]+|[a-z.-]+\.(db|toml|lock)(-wal|-shm)?|archive/[a-z0-9.-]+", name) for name in names
    )


def test_row_15_a_link_where_a_file_of_ours_goes_is_not_followed(
    web: Any, command: Callable[..., tuple[int, bytes]], tmp_path: Path
) -> None:
    """Somebody else's file keeps what it has, also when it is reached through the directory's own names."""
    web.page("http://a.test/")
    outside = tmp_path / "outside"
    outside.write_text("precious")
    web.crawl("http://a.test/")
    target = tmp_path / "list.csv"
    target.symlink_to(outside)
    command("export", web.directory, "-o", target)
    assert outside.read_text() == "precious"


# -- row 16: formulas ---------------------------------------------------------------------------------------------


def test_row_16_no_cell_of_a_table_for_people_is_a_formula(
    web: Any, command: Callable[..., tuple[int, bytes]], tmp_path: Path
) -> None:
    web.put("http://a.test/", b"<a href='/=1+1'>x</a>", b"ETag: =cmd|' /C calc'!A0", b"Content-Type: =1+1/html")
    web.put("http://a.test/=1+1", b"<title>=1+1</title>@x", b"Content-Type: @SUM(1)/html", b"Last-Modified: -1+1")
    web.crawl("http://a.test/")
    target = tmp_path / "list.csv"
    code, told = command("export", web.directory, "-o", target)
    assert code == 0, told
    cells = [cell for row in csv.reader(io.StringIO(target.read_text("utf-8-sig"))) for cell in row]
    assert any("http://a.test/" in cell for cell in cells)
    assert not [cell for cell in cells if cell[:1] in "=+-@\t\r" and cell]


# -- row 19 and 20: statements and pickles --------------------------------------------------------------------------


@cache
def _trees() -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(path.read_text("utf-8"))) for path in sorted(SOURCE.rglob("*.py"))]


NAMES_ONLY = {
    "exports/sqlite.py": "names of tables and columns that are fixed, and quoted",
    "app/sql.py": "words of our own in front of a fixed table",
    "records/views.py": "names of views that are fixed",
}
"""Files that format names into statements, since no parameter can be a name, and whose names they are."""


def test_row_19_no_statement_is_put_together_from_values() -> None:
    """Statements come from files. A PRAGMA takes no parameters: those get words and numbers of our own."""
    found = []
    for path, tree in _trees():
        name = path.relative_to(SOURCE).as_posix()
        if name.startswith("testing/") or name in NAMES_ONLY:
            continue
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args:
                found += [f"{name}:{call.lineno}"] if _is_formatted(call.func.attr, call.args[0]) else []
    assert found == []


def _is_formatted(method: str, statement: ast.expr) -> bool:
    if method not in ("execute", "executemany", "executescript"):
        return False
    if isinstance(statement, ast.JoinedStr):
        first = statement.values[0]
        return not (isinstance(first, ast.Constant) and str(first.value).startswith("PRAGMA "))
    return isinstance(statement, ast.BinOp)


def test_row_19_quotes_and_statements_in_urls_are_text(web: Any) -> None:
    evil = "/';DROP TABLE outcome;--\"%27)"
    web.page("http://a.test/", evil, "http://x';drop.test/", "http://a.test/?q=1' OR '1'='1")
    web.put(f"http://a.test{evil}", b"'; DELETE FROM queued; --", b"Content-Type: text/html'; DROP TABLE host; --")
    web.crawl("http://a.test/")
    with closing(sqlite3.connect(web.directory / "frontier.db")) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert {"outcome", "queued", "host"} <= tables
    assert web.story("http://a.test/").state is UrlState.DONE


def test_row_20_nothing_is_read_that_could_run() -> None:
    forbidden = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
    found = []
    for path, tree in _trees():
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name.partition(".")[0] for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [(node.module or "").partition(".")[0]]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec"):
                names = [node.func.id]
            found += [f"{path.name}:{node.lineno}: {name}" for name in names if name in forbidden | {"eval", "exec"}]
    assert found == []


# -- rows 23 and 24: whom a crawl is turned against -----------------------------------------------------------------


def test_row_23_a_page_full_of_links_to_one_host_sends_it_no_more_than_its_pace_allows(web: Any) -> None:
    """However many links there are, the host is asked one thing at a time, robots.txt first, and knows by whom."""
    web.page("http://a.test/", *(f"http://victim.test/{n}" for n in range(2000)))
    times: list[float] = []

    def page(head: bytes) -> bytes:
        times.append(time.monotonic())
        return b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

    for n in range(2000):
        web.pages[f"http://victim.test/{n}"] = page
    settings = web.settings(scope__strategy="any", budget__pages=6, host__delay=0.3)
    package.Crawl(web.directory, ["http://a.test/"], settings=settings).run()
    asked = [url for url in web.urls if "victim" in url]
    assert asked[0] == "http://victim.test/robots.txt"
    assert len(times) <= 6
    assert times[-1] - times[0] > 0.15 * (len(times) - 1), "half of the delay, since a busy machine notes late"
    assert all(b"User-Agent: crawlspace/" in head and b"tests@crawlspace.test" in head for head in web.asked)


def test_row_24_a_domain_of_endless_hosts_gets_no_more_than_its_share(web: Any) -> None:
    web.page("http://a.test/", *(f"http://h{n}.wild.test/" for n in range(300)))
    web.crawl("http://a.test/", scope__strategy="any", scope__hosts_per_domain=5)
    asked = {url.split("/")[2] for url in web.urls if "wild" in url}
    assert len(asked) == 5


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_row_24_a_million_hosts_of_one_domain_leave_little_behind(tmp_path: Path) -> None:
    """What lies beyond the caps is a number: neither the file nor the memory grows with it."""
    settings = FrontierSettings(hosts_per_domain=1_000)
    batch = 5_000
    sizes: list[int] = []
    peaks: list[int] = []

    async def main() -> None:
        store = await SqliteFrontier.open(tmp_path / "frontier.db", settings, SystemClock())
        identity = Identity(policy_from(IdentitySettings()), bytes(32))
        try:
            for start in range(0, 1_000_000, batch):
                found = [identity.identify(f"http://h{n}.wild.test/") for n in range(start, start + batch)]
                await store.claim([Claim(each) for each in found if not isinstance(each, Unusable)])
                if (start + batch) % 500_000 == 0:
                    sizes.append((tmp_path / "frontier.db").stat().st_size)
                    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
            counts = await store.counts()
            assert counts.states[UrlState.QUEUED] == 1_000
            assert counts.known + counts.refused_beyond_cap == 1_000_000
            assert counts.hosts < 20_000
        finally:
            await store.close()

    asyncio.run(main())
    assert sizes[1] < 1.1 * sizes[0] + 1_000_000
    assert peaks[1] < peaks[0] + 30_000


# -- row 25: hostile archives ---------------------------------------------------------------------------------------

FIELDS = [
    ("WARC-Type", "response"),
    ("WARC-Record-ID", "<urn:x>"),
    ("WARC-Date", "2023-11-14T22:13:20Z"),
    ("WARC-Target-URI", "http://a.test/"),
]


@cache
def _archives() -> dict[str, bytes]:
    block = b"HTTP/1.1 200 OK\r\n\r\nbody"
    plain = encode(FIELDS, block)
    good = deflate(plain, 1)
    return {
        "truncated": good[: len(good) // 2],
        "a length that is too long": deflate(plain.replace(b"Content-Length: 23", b"Content-Length: 99999999"), 1),
        "a length that is too short": deflate(plain.replace(b"Content-Length: 23", b"Content-Length: 2"), 1),
        "a negative length": deflate(plain.replace(b"Content-Length: 23", b"Content-Length: -1"), 1),
        "a bomb": deflate(encode(FIELDS, b"HTTP/1.1 200 OK\r\n\r\n" + bytes(50 << 20)), 3),
        "a wrong checksum": good[:-8] + bytes(8),
        "no archive at all": b"\x1f\x8b" + bytes(100),
        "fields without end": deflate(b"WARC/1.1\r\n" + b"X: y\r\n" * 500_000, 1),
    }


@pytest.mark.parametrize("fault", _archives())
def test_row_25_a_hostile_archive_is_damage_and_never_more(fault: str, tmp_path: Path) -> None:
    data = _archives()[fault]
    (tmp_path / "x.warc.gz").write_bytes(data)
    reader = Reader(RealDisk(), tmp_path, CAP)
    with suppress(StoreDamaged):
        for _, capture in reader.scan({"x.warc.gz": len(data)}):
            assert len(capture.payload) <= CAP


def test_row_25_no_flipped_byte_gives_another_body(tmp_path: Path) -> None:
    good = deflate(encode(FIELDS, b"HTTP/1.1 200 OK\r\n\r\nbody"), 1)
    for place in range(0, len(good), 3):
        data = good[:place] + bytes([good[place] ^ 0x41]) + good[place + 1 :]
        (tmp_path / "x.warc.gz").write_bytes(data)
        with suppress(StoreDamaged):
            for _, capture in Reader(RealDisk(), tmp_path, CAP).scan({"x.warc.gz": len(data)}):
                assert capture.payload == b"body"
