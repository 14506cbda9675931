"""`crawlspace robots` tells the rule that decides."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

RULES = "User-agent: *\nDisallow: /shut\nCrawl-delay: 2\nSitemap: /map.xml\n\nUser-agent: other\nDisallow: /\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "robots.txt"
    path.write_text(RULES)
    return path


class _Rules(BaseHTTPRequestHandler):
    """Redirects once and then gives the rules."""

    def do_GET(self) -> None:
        body = RULES.encode()
        self.send_response(200 if self.path == "/rules" else 301)
        self.send_header("Location", "/rules")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def origin() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Rules)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_it_names_the_rule_and_the_exit_code_tells(crawlspace: Callable[..., Any], file: Path) -> None:
    shut = crawlspace("robots", "http://a.test/shut/1", "--file", file)
    assert shut.code == 1
    assert "forbidden    Disallow: /shut (line 2)" in shut.out
    assert "crawl-delay  2 s" in shut.out
    assert "sitemap      /map.xml" in shut.out
    assert crawlspace("robots", "http://a.test/open", "--file", file).code == 0


def test_it_asks_as_another_crawler(crawlspace: Callable[..., Any], file: Path) -> None:
    ran = crawlspace("robots", "http://a.test/open", "--file", file, "--agent", "Other/1.0", "--json")
    facts = json.loads(ran.out)
    assert ran.code == 1
    assert (facts["allowed"], facts["rule"], facts["agent"]) == (False, "Disallow: / (line 7)", "Other/1.0")


def test_it_fetches_the_rules_through_redirects(crawlspace: Callable[..., Any], origin: str) -> None:
    quick = ("-s", 'network.allow=["127.0.0.1"]', "-s", "host.delay=0")
    ran = crawlspace("robots", f"{origin}/shut", "--json", *quick)
    facts = json.loads(ran.out)
    assert facts["asked"] == [f"{origin}/robots.txt", f"{origin}/rules"]
    assert (facts["allowed"], facts["verdict"], facts["crawl_delay"]) == (False, "rules", 2.0)


def test_an_origin_that_does_not_answer_forbids_for_now(crawlspace: Callable[..., Any]) -> None:
    ran = crawlspace("robots", "http://127.0.0.1:1/x", "-s", 'network.allow=["127.0.0.1"]')
    assert ran.code == 1
    assert "verdict      defer" in ran.out
    assert "crawl-delay" not in ran.out


@pytest.mark.parametrize(
    "arguments", [["mailto:x"], ["http://a.test/", "--file", "."], ["http://a.test/", "--file", "none"]]
)
def test_wrong_input_is_told_and_shows_no_traceback(
    crawlspace: Callable[..., Any], arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = crawlspace("robots", *arguments)
    assert ran.code == 2
    assert "Traceback" not in ran.err


def test_a_file_that_is_not_readable_is_named(
    crawlspace: Callable[..., Any], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    ran = crawlspace("robots", "http://a.test/", "--file", file)
    assert (ran.code, "permission denied" in ran.err) == (2, True)
