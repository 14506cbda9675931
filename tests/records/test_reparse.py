"""Parsing again from the archive: what is chosen, what replaces what, and what a kill leaves."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import pytest
from click.testing import CliRunner, Result

from crawlspace.api import Crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.parsing import load_parser, load_parsers, records_at
from crawlspace.cli import cli
from crawlspace.errors import ConfigError, UsageError
from crawlspace.events import Ending
from crawlspace.parsers import Document, Item, parser
from crawlspace.records.journal import numbers, path_of

Packed = tuple[str, bytes]
Pack = Callable[..., CrawlDirectory]

TITLES = """
from crawlspace import parser, PAGE_KEY

@parser("titles", {version}, match="html", key=PAGE_KEY)
def titles(page):
    {body}
"""


def pages(count: int = 12) -> list[Any]:
    """Small pages of two hosts."""
    return [
        page(f"http://h{n % 2}.test/p{n}.html", f"<title>T{n}</title><a href=/p{n + 1}.html>x</a>")
        for n in range(count)
    ]


def page(url: str, body: str, type: str = "text/html", at: int = 1_760_000_000_000) -> Any:
    from types import SimpleNamespace

    return SimpleNamespace(url=url, body=body.encode(), type=type, at=at)


def write(directory: Path, version: str, body: str = "return {'title': page.title}") -> str:
    """A parser of the user's own; its name."""
    (directory / "mine.py").write_text(TITLES.format(version=version, body=body))
    return "mine.py:titles"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(each) for each in arguments])


def reparse(place: CrawlDirectory, name: str, *more: object) -> dict[str, Any]:
    """Re-parse in this process; what the verb tells."""
    ran = run("reparse", place.path, "--parser", name, "--processes", 1, "--json", *more)
    assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
    told: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return told


def ask(place: CrawlDirectory, query: str) -> list[dict[str, Any]]:
    return Crawl(place.path).sql(query)


def test_only_what_an_older_version_made_is_made_again(pack: Pack) -> None:
    place = pack(pages())
    name = write(place.path, "1")
    assert reparse(place, name)["parsed"] == 12
    again = reparse(place, name)
    assert (again["parsed"], again["current"]) == (0, 12)
    write(place.path, "1.1", "return None if page.title == 'T3' else {'title': page.title, 'v': 2}")
    bumped = reparse(place, name)
    assert (bumped["parsed"], bumped["records"]) == (12, 11)
    rows = ask(place, "SELECT version, count(*) AS n FROM observations GROUP BY ALL")
    assert rows == [{"version": "1.1", "n": 11}]
    write(place.path, "1")
    older = reparse(place, name)
    assert (older["parsed"], older["newer"]) == (0, 12)


CHOICES = [
    (["--host", "h1.test"], 6),
    (["--type", "image/*", "--type", "text/html", "--status", "200"], 12),
    (["--status", "404"], 0),
    (["--since", "2025-10-09", "--until", "2025-10-10"], 12),
    (["--until", "2025-10-09"], 0),
    (["--where", "url LIKE '%/p1%' AND status = 200"], 3),
]


def test_a_selection_is_made_by_host_type_status_time_or_sql(pack: Pack) -> None:
    place = pack(pages())
    name = write(place.path, "1")
    for options, count in CHOICES:
        assert reparse(place, name, "--again", *options)["parsed"] == count, options


def test_new_rows_replace_exactly_those_of_the_selection(pack: Pack) -> None:
    place = pack(pages())
    name = write(place.path, "1")
    reparse(place, name)
    write(place.path, "2", "return {'title': 'new'}")
    reparse(place, name, "--where", "url LIKE '%/p3.html'")
    rows = ask(place, "SELECT version, count(*) AS n FROM observations GROUP BY ALL ORDER BY 1")
    assert rows == [{"version": "1", "n": 11}, {"version": "2", "n": 1}]


def test_what_is_not_meant_is_not_read_and_leaves_no_row(pack: Pack) -> None:
    place = pack([*pages(2), page("http://h0.test/x.png", "picture", "image/png")])
    told = reparse(place, "links")
    assert told["parsed"] == 2
    assert len(ask(place, "SELECT * FROM parses")) == 2


def test_errors_are_kept_with_the_capture_and_can_be_tried_again(pack: Pack) -> None:
    place = pack(pages(4))
    name = write(place.path, "1", "return {'t': 1 / (page.title != 'T2')}")
    assert reparse(place, name)["failed"] == 1
    assert reparse(place, name)["parsed"] == 0
    [failed] = ask(place, "SELECT url, error FROM parses WHERE error IS NOT NULL")
    assert failed["url"] == "http://h0.test/p2.html"
    assert "ZeroDivisionError" in failed["error"]
    write(place.path, "1")
    assert reparse(place, name, "--failed")["parsed"] == 1


def test_a_capture_that_cannot_be_read_is_told_and_the_rest_is_parsed(pack: Pack) -> None:
    place = pack(pages(4))
    [file] = place.archive.glob("*.warc.gz")
    data = bytearray(file.read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    file.write_bytes(data)
    told = reparse(place, "links")
    assert told["damaged"] >= 1
    assert told["parsed"] + told["damaged"] == 4
    assert run("reparse", place.path, "--parser", "links").exit_code == 7


def test_a_crawl_that_runs_is_left_alone(pack: Pack) -> None:
    place = pack(pages(1))
    with place.locked():
        ran = run("reparse", place.path, "--parser", "links")
    assert ran.exit_code != 0
    assert "in use" in str(ran.exception)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nothing", "there is no parser 'nothing'"),
        ("no.such.module:x", "there is no parser"),
        ("none.py:x", "there is no file none.py"),
        ("crawlspace.parsers.links:nothing", "there is no 'nothing'"),
        ("crawlspace.parsers.links:alternates", "is no parser"),
        ("crawlspace.errors", "has 0 parsers"),
        ("broken.py", "cannot be loaded: SyntaxError"),
    ],
)
def test_a_parser_that_cannot_be_had_is_told(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "broken.py").write_text("(")
    with pytest.raises(UsageError, match=re.escape(why)):
        load_parser(name, tmp_path)


def test_a_file_gives_all_its_parsers(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(
        "from crawlspace import Router, parser\n@parser('a', 1)\ndef a(page): ...\nb = Router('b', 1)\n"
    )
    assert [each.name for each in load_parsers("two.py", tmp_path)] == ["a", "b"]


def test_two_parsers_of_one_name_are_refused(tmp_path: Path) -> None:
    from crawlspace.app.parsing import running
    from crawlspace.parsers.settings import ParserSettings

    with pytest.raises(ConfigError, match="two parsers are called 'links'"):
        running(ParserSettings(run=("links", "links")), CrawlDirectory(tmp_path))


def rows_of(place: CrawlDirectory) -> list[dict[str, Any]]:
    return ask(
        place, "SELECT parser, version, id, url, place, digest, data FROM observations ORDER BY parser, id, place"
    )


def killed(place: CrawlDirectory, name: str, after: int) -> None:
    """Start the verb in a process of its own, and kill it -9 when so much is in the journal."""
    command = [sys.executable, "-m", "crawlspace", "reparse", str(place.path), "--parser", name, "--processes", "1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    directory = records_at(place)
    known = set(numbers(directory))
    while process.poll() is None:
        new = [path_of(directory, number) for number in numbers(directory) if number not in known]
        if sum(path.stat().st_size for path in new if path.exists()) >= after:
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.001)
    assert process.returncode in (0, -signal.SIGKILL)


def test_killed_anywhere_the_same_call_ends_with_the_same_rows(pack: Pack) -> None:
    place = pack(pages(200))
    name = write(place.path, "1")
    killed(place, name, after=1)
    left = reparse(place, name)
    assert left["parsed"] + left["current"] == 200
    rows = rows_of(place)
    assert len(rows) == 200
    write(place.path, "2", "return {'title': page.title}")
    killed(place, name, after=20_000)
    reparse(place, name)
    assert rows_of(place) == [{**row, "version": "2"} for row in rows]


def test_a_pool_gives_the_rows_of_one_process_and_survives_a_page_that_takes_its_process_down(pack: Pack) -> None:
    place = pack(pages(40))
    name = write(place.path, "1")
    reparse(place, name)
    alone = rows_of(place)
    write(place.path, "2", "import os; page.title != 'T7' or os._exit(9); return {'title': page.title}")
    ran = run("reparse", place.path, "--parser", name, "--processes", 2, "--json")
    told = json.loads(ran.stdout.splitlines()[-1])
    assert (told["parsed"], told["failed"]) == (40, 1)
    [crashed] = ask(place, "SELECT url, error FROM parses WHERE error IS NOT NULL")
    assert crashed["url"] == "http://h1.test/p7.html"
    assert [{**row, "version": "2"} for row in alone if row["url"] != crashed["url"]] == rows_of(place)


def independent(files: Iterable[Path]) -> int:
    """How many links there are, by other code than ours: fastwarc, and a regular expression made for these pages."""
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    count = 0
    for file in files:
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream, record_types=WarcRecordType.response):
                count += len(set(re.findall(rb"<a href=([^>]+)>", record.reader.read())))
    return count


def test_counts_agree_with_an_independent_script(pack: Pack) -> None:
    place = pack(pages(50))
    reparse(place, "links")
    [counted] = ask(place, "SELECT count(*) AS n FROM links")
    assert counted["n"] == independent(place.archive.glob("*.warc.gz")) == 50


def test_a_url_that_was_stored_is_done_when_its_processing_succeeds(pack: Pack, tmp_path: Path) -> None:
    import http.server
    import threading

    class Site(http.server.BaseHTTPRequestHandler):
        asked: ClassVar[list[str]] = []

        def do_GET(self) -> None:
            self.asked.append(self.path)
            body = b"<title>T</title><a href=/next>x</a>"
            self.send_response(404 if self.path == "/robots.txt" else 200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings = {"host.delay": 0, "network.allow": ["127.0.0.0/8"], "budget.pages": 1}
    crawl = Crawl(tmp_path / "stored", [f"http://127.0.0.1:{server.server_port}/"], settings=settings)
    fails = [True]

    @crawl.handler
    def handler(page: Document) -> None:
        if fails[0]:
            raise RuntimeError("boom")

    @crawl.parser("title", 1, key="title")
    def title(page: Document) -> Item:
        return Item({"title": page.title})

    assert crawl.run().ending in (Ending.FINISHED, Ending.BUDGET)
    server.shutdown()
    server.server_close()
    asked = list(Site.asked)
    assert crawl.reparse(title).unfinished == 1
    fails[0] = False
    done = crawl.reparse(title)
    assert (done.finished, done.unfinished) == (1, 0)
    states = {row["url"].rpartition("/")[2]: row["state"] for row in crawl.sql("SELECT url, state FROM outcomes")}
    assert states == {"": "done", "next": "queued"}
    with closing(sqlite3.connect(tmp_path / "stored" / "frontier.db")) as store:
        assert store.execute("SELECT count(*) FROM page").fetchone() == (1,), "the content index knows the page"
    assert [row["data"] for row in crawl.sql("SELECT data FROM records")] == ['{"title":"T"}']
    assert Site.asked == asked


def test_a_parser_need_not_be_found_by_its_name_in_this_process(pack: Pack) -> None:
    place = pack(pages(3))

    @parser("here", 1, key="title")
    def here(page: Document) -> dict[str, str]:
        return {"title": page.title}

    crawl = Crawl(place.path)
    assert crawl.reparse(here).records == 3
    assert crawl.reparse(here).current == 3


@pytest.mark.long
def test_a_ray_cluster_gives_the_rows_of_one_process(pack: Pack) -> None:
    pytest.importorskip("ray")
    place = pack(pages(300))
    name = write(place.path, "1")
    reparse(place, name)
    alone = rows_of(place)
    ran = run("reparse", place.path, "--parser", name, "--again", "--engine", "ray", "--processes", 2, "--json")
    assert json.loads(ran.stdout.splitlines()[-1])["parsed"] == 300, ran.output
    assert rows_of(place) == alone
