"""Two workers and hosts that share a clock: the requests of both together are apart, whoever makes them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest
import tomli_w

from crawlspace.frontier.postgres import Place
from crawlspace.settings import nested

DELAY_MS = 80
DOMAINS = ("one.test", "two.test", "three.test")
HOSTS = 3
PAGES = 10


PATIENCE_SECONDS = 60


class _Server(ThreadingHTTPServer):
    """Answers nobody until everybody who is awaited has asked, however late a busy machine starts one of them."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._awaited: set[str] = set()
        self._all_here = threading.Event()
        self._all_here.set()
        self._lock = threading.Lock()

    def await_all(self, *names: str) -> None:
        self._awaited = set(names)
        self._all_here.clear()

    def asked_by(self, agent: str) -> None:
        """Somebody has asked, who tells its name to the server."""
        with self._lock:
            self._awaited = {name for name in self._awaited if name not in agent}
        if not self._awaited:
            self._all_here.set()
        self._all_here.wait(PATIENCE_SECONDS)


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, _Server)
        self.server.asked_by(self.headers["User-Agent"])
        links = "".join(f'<a href="/p{number}">x</a>' for number in range(1, PAGES))
        body = f"<p>{self.headers['Host']}{self.path}</p>{links}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def meeting() -> Iterator[_Server]:
    server = _Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def settings(port: int) -> dict[str, Any]:
    return {
        "contact": "tests@crawlspace.test",
        "host.delay": 0,
        "group.by": "domain",
        "group.delay": DELAY_MS / 1000,
        "robots.obey": False,
        "concurrency.hosts": 2,
        "network.allow": ["127.0.0.1"],
        "network.resolve": {f"*.{domain}:80": f"127.0.0.1:{port}" for domain in DOMAINS},
    }


def test_no_request_to_a_group_is_sooner_than_its_delay_after_another_workers(
    meeting: _Server, place: Place, tmp_path: Path
) -> None:
    """Each has two hosts at most, of three groups: something is left for the other, which is waited for."""
    config = tmp_path / "settings.toml"
    config.write_text(tomli_w.dumps(nested(settings(meeting.server_port))))
    shared = ["--frontier", f"{place.address}&schema={place.schema}&shards={place.shards}"]
    seeds = [f"http://h{number}.{domain}/" for domain in DOMAINS for number in range(HOSTS)]
    first = ["crawl", *seeds, "--dir", str(tmp_path / "first"), *shared, "--config", str(config)]
    command = [sys.executable, "-m", "crawlspace"]
    with subprocess.Popen([*command, *first, "-q", "-s", "budget.pages=1"]) as process:
        assert process.wait(60) == 4, "all is known, and nearly all is left to do"
    names = ("second", "third")
    meeting.await_all(*names)
    told = ["-q", "-s", "budget.pages=none", "-s", f"fetch.timeout={PATIENCE_SECONDS + 20}"]
    told += ["-s", f"fetch.idle_timeout={PATIENCE_SECONDS + 20}"]
    workers = [
        subprocess.Popen(
            [*command, "worker", str(tmp_path / name), *shared, *told, "-s", f"contact={name}@crawlspace.test"]
        )
        for name in names
    ]
    try:
        assert [process.wait(120) for process in workers] == [0, 0]
    finally:
        for process in workers:
            process.kill()
    with psycopg.connect(place.address) as connection:
        connection.execute("SELECT set_config('search_path', %s, false)", [place.schema])
        rows = connection.execute(
            "SELECT h.pace_group, o.requested_at, s.worker FROM outcome o "
            "JOIN host h ON h.shard = o.shard AND h.hid = o.hid "
            "JOIN segment s ON s.id = o.segment WHERE o.state = 3 ORDER BY o.requested_at"
        ).fetchall()
    asked: defaultdict[str, list[int]] = defaultdict(list)
    for group, at, _ in rows:
        asked[group].append(at)
    assert {group: len(times) for group, times in asked.items()} == {
        f"domain {domain}": HOSTS * PAGES for domain in DOMAINS
    }
    assert len({worker for _, _, worker in rows[1:]}) >= 2, "both had a part in it"
    gaps = [after - before for times in asked.values() for before, after in pairwise(times)]
    # Both read the same clock, in whole milliseconds.
    assert min(gaps) >= DELAY_MS - 2
