"""The web starts, serves from its own thread, stops at once, and tells a crawler how to reach it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from crawlspace.errors import UsageError
from crawlspace.testing.toyweb import CALM, ToyWeb, certificates, tls_available


def test_the_table_covers_every_host_and_both_ports() -> None:
    """http and https of each host lead to 127.0.0.1, so a crawler never asks real DNS."""
    with ToyWeb() as web:
        table = web.resolve
        hosts = {name.rpartition(":")[0] for name in table}
        assert hosts >= {"shop.test", "www.shop.test", "xn--bcher-kva.test", "dead.shop.test", "elsewhere.test"}
        assert table.keys() == {f"{host}:{port}" for host in hosts for port in (80, 443)}
        assert all(address.startswith("127.0.0.1:") for address in table.values())
        assert len(set(table.values())) == 3
        assert web.seeds == ["https://shop.test/", "http://old.test/", "http://bücher.test/"]


def test_without_tls_https_is_refused(client_of: Any) -> None:
    """Everything is on http, the table still leads https nowhere else, and there is no authority."""
    with ToyWeb(tls=False) as web:
        assert web.resolve["shop.test:443"] == web.resolve["dead.shop.test:80"]
        assert all(url.startswith("http://") for url in web.truth.page_of)
        assert client_of(web).get("http://shop.test/").status == 200
        with pytest.raises(RuntimeError, match="without TLS"):
            _ = web.ca_file


def test_without_trustme_tls_is_refused_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra that is missing is named, before anything runs."""
    monkeypatch.setitem(sys.modules, "trustme", None)
    monkeypatch.setattr(certificates, "find_spec", lambda _name: None)
    assert not tls_available()
    with pytest.raises(UsageError, match=r"crawlspace\[testing\], or make it with tls=False"):
        ToyWeb()


def test_a_web_that_does_not_run_has_no_addresses() -> None:
    """Before the start and after the stop."""
    web = ToyWeb(features=CALM)

    def has_none() -> bool:
        for ask in (lambda: web.resolve, lambda: web.ca_file):
            with pytest.raises(RuntimeError, match="not running"):
                ask()
        return True

    assert has_none()
    with web:
        assert web.resolve
        assert web.ca_file.read_text().startswith("-----BEGIN CERTIFICATE-----")
    assert has_none()
    web.stop()
    with pytest.raises(RuntimeError, match="started once"):
        web.start()


def test_it_can_be_stopped_without_having_been_started() -> None:
    """Nothing happens."""
    web = ToyWeb(tls=False)
    web.stop()
    assert web.requests == []


def test_a_web_that_cannot_start_says_why_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread's failure comes out of `start`."""
    web = ToyWeb()

    def full(*_arguments: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(certificates, "server_context", full)
    with pytest.raises(OSError, match="no space left"):
        web.start()
    assert not [thread for thread in threading.enumerate() if thread.name == "toyweb"]


def test_it_serves_an_event_loop_as_well(client_of: Any) -> None:
    """`async with` starts and stops it without holding up the loop."""

    async def crawl() -> int:
        async with ToyWeb(tls=False) as web:
            return int((await asyncio.to_thread(client_of(web).get, "http://shop.test/")).status)

    assert asyncio.run(crawl()) == 200


def test_stopping_is_quick_while_clients_hang(client_of: Any) -> None:
    """A silent host, an idle connection, half a head and a body that nobody reads: all are cut, all are on record."""
    web = ToyWeb()
    web.start()
    client = client_of(web)
    mute, huge = "http://mute.shop.test/", "http://odd.shop.test/oversized"
    with client.connect(mute) as silent, client.connect(huge) as deaf, client.connect("https://shop.test/") as idle:
        silent.sendall(client.request(mute))
        deaf.sendall(client.request(huge))
        idle.sendall(b"GET / HTTP/1.1\r\n")
        while len(web.requests) < 2:
            client.get("http://odd.shop.test/gone")
        start = time.monotonic()
        web.stop()
        assert time.monotonic() - start < 2
    assert all(request.ended is not None for request in web.requests)
    assert not [request for request in web.requests if request.whole and request.target != "/gone"]


def test_latency_is_added_to_every_answer(client_of: Any) -> None:
    """In seconds, before the first byte."""
    with ToyWeb(tls=False, latency=0.1) as web:
        start = time.monotonic()
        client_of(web).get("http://shop.test/")
        assert time.monotonic() - start >= 0.1
        request = web.requests[0]
        assert request.ended is not None
        assert request.ended - request.arrived >= 0.1


def test_the_settings_reach_it_as_toml() -> None:
    """What a person puts into crawl.toml."""
    with ToyWeb() as web:
        settings = tomllib.loads(web.toml())
        assert settings["contact"]
        assert settings["fetch"] == {"ca_file": str(web.ca_file)}
        assert settings["network"] == {"allow": ["127.0.0.1"], "resolve": web.resolve}
        assert settings["identity"]["hosts"] == [dict(rule) for rule in web.truth.own_folds]
    with ToyWeb(tls=False, features=()) as web:
        assert tomllib.loads(web.toml()).keys() == {"contact", "network"}


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_it_is_told_to_end(tmp_path: Path, ending: signal.Signals) -> None:
    """Prints its settings, answers, logs, and ends with 0 and no word on Ctrl-C."""
    log = tmp_path / "requests.jsonl"
    command = [sys.executable, "-m", "crawlspace.testing.toyweb", "--seed", "5", "--features", "calm"]
    command += ["--without", "aliases", "--log", str(log)]
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        # The last table is that of the host rules, and its last line the names of index documents.
        lines = []
        while not lines or not lines[-1].startswith("index_documents"):
            lines.append(process.stdout.readline())
            assert lines[-1], "the command ended by itself"
        settings = tomllib.loads("".join(lines))
        address, _, port = settings["network"]["resolve"]["news.shop.test:80"].partition(":")
        with socket.create_connection((address, int(port)), 5) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: news.shop.test\r\nConnection: close\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        process.send_signal(ending)
        _, errors = process.communicate(timeout=10)
    assert process.returncode == 0
    assert errors == ""
    assert Path(log).read_text().count("\n") == 1
    assert not Path(settings["fetch"]["ca_file"]).exists()


@pytest.mark.parametrize("wrong", [["--size", "huge"], ["--seed", "x"], ["--log", "/nowhere/at/all"]])
def test_a_wrong_option_gives_a_line_and_no_traceback(wrong: list[str]) -> None:
    """Exit code 1 or 2."""
    command = [sys.executable, "-m", "crawlspace.testing.toyweb", *wrong]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode in (1, 2)
    assert "Error" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""
