"""The audits find what is wrong in a log and nothing in a right one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crawlspace.testing.toyweb import (
    Request,
    ToyWeb,
    Truth,
    fetched_twice,
    politeness,
    read_log,
    robots_not_first,
    trespasses,
)


@pytest.fixture(scope="module")
def truth() -> Truth:
    return ToyWeb(tls=False).truth


def asked(url: str, at_ms: float, took_ms: float | None = 10, **more: Any) -> Request:
    """A request that arrived and ended so many milliseconds after some moment."""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    ended = None if took_ms is None else (at_ms + took_ms) / 1000
    values = {"number": 1, "method": "GET", "user_agent": "x", "connection": 1, "status": 200, "whole": True, **more}
    return Request(scheme=scheme, host=host, target=slash + path, at=0, arrived=at_ms / 1000, ended=ended, **values)


A, B = "http://news.shop.test/", "http://news.shop.test/2025/01/"
OTHER = "http://forum.shop.test/"
ROBOTS = "http://rules.shop.test/robots.txt"
ONE, TWO = "http://rules.shop.test/public/1", "http://rules.shop.test/public/2"


@pytest.mark.parametrize(
    "requests",
    [
        [],
        [asked(A, 0)],
        [asked(A, 0), asked(B, 100)],
        [asked(A, 0), asked(B, 95.5)],
        [asked(A, 0, 104), asked(B, 100)],
        [asked(A, 0, 500), asked(OTHER, 1)],
        [asked(A, 0, None)],
        [asked(B, 100), asked(A, 0)],
        [asked(ROBOTS, 0), asked(ONE, 100), asked(TWO, 400)],
        [asked(A, 0, wait_ms=1000), asked(B, 1000)],
    ],
)
def test_a_polite_log_has_no_violations(truth: Truth, requests: list[Request]) -> None:
    """At 100 ms from start to start, 5 ms allowed to the server."""
    assert politeness(requests, truth, 100) == []


@pytest.mark.parametrize(
    ("requests", "words"),
    [
        ([asked(A, 0), asked(B, 94)], ["came 94.0 ms after"]),
        ([asked(A, 0), asked("https://news.shop.test/", 50)], ["came 50.0 ms after"]),
        ([asked(B, 50), asked(A, 0)], [f"{B} came 50.0 ms after {A}"]),
        ([asked(A, 0, 200), asked(B, 150)], ["while http://news.shop.test/ was still being answered"]),
        ([asked(A, 0, None), asked(B, 150)], ["was still being answered"]),
        ([asked(A, 0, 50), asked(B, 10)], ["came 10.0 ms after", "was still being answered"]),
        ([asked(ONE, 0), asked(TWO, 200)], ["300 ms were asked for"]),
        ([asked(A, 0, wait_ms=1000), asked(B, 500)], ["1000 ms were asked for"]),
        ([asked(A, 0), asked(A, 10), asked(A, 20)], ["came 10.0 ms after"] * 2),
    ],
)
def test_each_violation_is_named(truth: Truth, requests: list[Request], words: list[str]) -> None:
    """Too soon, overlapping, against a Crawl-delay, against a Retry-After."""
    found = politeness(requests, truth, 100)
    assert len(found) == len(words)
    assert all(word in sentence for word, sentence in zip(words, found, strict=True))


def test_the_tolerance_is_an_argument(truth: Truth) -> None:
    """A test on a slow machine may allow more, a strict one nothing."""
    requests = [asked(A, 0), asked(B, 90)]
    assert politeness(requests, truth, 100, tolerance_ms=20) == []
    assert len(politeness(requests, truth, 100, tolerance_ms=0)) == 1


def test_on_a_busy_machine_one_arrival_noted_late_is_believed_and_an_early_request_is_not(truth: Truth) -> None:
    """The distance before tells them apart; requests that overlap stay wrong."""
    late = [asked(A, 0), asked(B, 140), asked(A, 200)]
    assert len(politeness(late, truth, 100)) == 1
    assert politeness(late, truth, 100, is_busy=True) == []
    early = [asked(A, 0), asked(B, 100), asked(A, 160)]
    assert len(politeness(early, truth, 100, is_busy=True)) == 1
    twice = [asked(A, 0), asked(B, 140), asked(A, 200), asked(B, 260)]
    assert len(politeness(twice, truth, 100, is_busy=True)) == 1
    both = [asked(A, 0), asked(B, 140, 80), asked(A, 200)]
    assert len(politeness(both, truth, 100, is_busy=True)) == 1


def test_pages_fetched_twice_are_counted_over_their_spellings(truth: Truth) -> None:
    """Only whole answers of 200 to GET count, and only for pages."""
    page = max(truth.pages.values(), key=lambda page: len(page.spellings))
    one, two, *_ = sorted(page.spellings)
    assert fetched_twice([asked(one, 0), asked(two, 1), asked(two, 2)], truth) == {page.id: 3}
    innocent = [
        asked(one, 0),
        asked(two, 1, whole=False),
        asked(two, 2, status=500),
        asked(two, 3, method="HEAD"),
        asked("http://shop.test/robots.txt", 4),
        asked("http://shop.test/robots.txt", 5),
        asked("http://calendar.shop.test/month/2026/01", 6),
        asked("http://calendar.shop.test/month/2026/01", 7),
    ]
    assert fetched_twice(innocent, truth) == {}


def test_combinations_of_a_trap_count_in_any_order(truth: Truth) -> None:
    """Facets in another order are the same list."""
    lists = ["size=large&sort=age", "sort=age&size=large", "sort=name&size=large"]
    requests = [asked(f"http://outlet.shop.test/list?{query}", 0) for query in lists]
    assert fetched_twice(requests, truth) == {"http://outlet.shop.test/list?size=large&sort=age": 2}


def test_robots_must_be_asked_for_first_of_each_origin() -> None:
    """http and https are two origins, the order is that of arrival."""
    https = "https://rules.shop.test/"
    assert robots_not_first([asked(ONE, 10), asked(ROBOTS, 0)]) == []
    assert robots_not_first([asked(ONE, 0), asked(ROBOTS, 10)]) == [f"{ONE} was asked for before robots.txt"]
    assert robots_not_first([asked(ROBOTS, 0), asked(https, 10)]) == [f"{https} was asked for before robots.txt"]


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("http://rules.shop.test/private/1", "forbidden"),
        ("http://shop.test/cart/add?item=1", "forbidden"),
        ("http://elsewhere.test/landing", "out of scope"),
        ("http://down.shop.test/", "robots.txt cannot be had"),
        ("http://down.shop.test/robots.txt", ""),
        ("http://rules.shop.test/private/but-open", ""),
        ("http://shop.test/invented", ""),
    ],
)
def test_trespasses(truth: Truth, url: str, word: str) -> None:
    """Requests for what is fenced off, out of scope, or of a host that must not be asked."""
    found = trespasses([asked(url, 0)], truth)
    assert len(found) == bool(word)
    assert all(word in sentence for sentence in found)


def test_a_rude_client_is_caught_and_a_patient_one_is_not(client_of: Any) -> None:
    """The audits of a running web see real requests."""
    with ToyWeb(tls=False) as web:
        client = client_of(web)
        client.get("http://news.shop.test/robots.txt")
        client.get(A)
        assert web.audit(0) == []
        assert web.asked_robots_first() == []
        assert web.fetched_twice() == {}
        client.get(A)
        client.get("http://rules.shop.test/private/1")
        assert len(web.audit(10_000)) == 2
        assert web.audit(10_000, tolerance_ms=10_000) == []
        assert web.fetched_twice() == web.fetched_twice(web.truth) == {A: 2}
        assert len(web.asked_robots_first()) == 1
        assert len(web.trespasses()) == 1


def test_two_at_once_are_seen_on_the_wire(client_of: Any) -> None:
    """A second connection that asks while the first is being answered."""
    late = "http://odd.shop.test/late"
    with ToyWeb(tls=False) as web:
        client = client_of(web)
        with client.connect(late) as first, client.connect(late) as second:
            first.sendall(client.request(late, "Connection: close"))
            second.sendall(client.request(late, "Connection: close"))
            for connection in (first, second):
                assert b"".join(iter(lambda: connection.recv(65536), b"")).startswith(b"HTTP/1.1 200")  # noqa: B023
        assert [sentence for sentence in web.audit(0) if "still being answered" in sentence]


def test_a_client_that_was_killed_is_no_rival_of_its_successor(client_of: Any) -> None:
    """An answer that nobody waits for any more does not overlap with the next request."""
    late = "http://odd.shop.test/late"
    with ToyWeb(tls=False) as web:
        client = client_of(web)
        with client.connect(late) as killed:
            killed.sendall(client.request(late))
            while not web.requests:
                client.get(OTHER)
        assert client.get(late).status == 200
        first, second = (request for request in web.requests if request.url == late)
        assert (first.status, first.whole, second.status) == (0, False, 200)
        assert [sentence for sentence in web.audit(0) if late in sentence] == []


def test_the_log_file_has_a_line_for_each_request_that_ended(client_of: Any, tmp_path: Path) -> None:
    """Written as they end, readable while the web runs, the same as in memory; a half line at the end is ignored."""
    path = tmp_path / "requests.jsonl"
    with ToyWeb(tls=False) as web:
        web.log_to(path)
        client = client_of(web)
        for url in (A, B, OTHER):
            client.get(url)
        assert read_log(path) == web.requests
        assert [json.loads(line)["host"] for line in path.read_text().splitlines()] == [
            "news.shop.test",
            "news.shop.test",
            "forum.shop.test",
        ]
        second = tmp_path / "second.jsonl"
        web.log_to(second)
        client.get(A)
        assert [request.url for request in read_log(second)] == [A]
    with path.open("ab") as file:
        file.write(b'{"number": 4, "sch')
    assert len(read_log(path)) == 3
