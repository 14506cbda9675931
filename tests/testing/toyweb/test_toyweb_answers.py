"""Each kind of answer is what its host promises, seen on the wire."""

from __future__ import annotations

import gzip
import re
import socket
import time
import zlib
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from crawlspace.testing.toyweb import Feature, ToyWeb

ODD = "http://odd.shop.test"


def unchunk(payload: bytes) -> bytes:
    """Body of a chunked payload, which must end properly."""
    body = b""
    while True:
        size, _, payload = payload.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            assert payload == b"\r\n"
            return body
        assert payload[length : length + 2] == b"\r\n"
        body, payload = body + payload[:length], payload[length + 2 :]


def test_a_page_is_realistic_html_of_honest_length(client: Any) -> None:
    """Title, paragraphs, navigation and 1 to 30 KB, with the length that the head says."""
    answer = client.get("https://shop.test/product/1")
    assert answer.status == 200
    assert int(answer.field("content-length")) == len(answer.payload)
    assert 1000 < len(answer.payload) < 30_000
    assert b"<title>Product 1</title>" in answer.payload
    assert answer.payload.count(b"<p>") >= 4
    assert answer.payload.count(b"<a href=") >= 3


@pytest.mark.parametrize(
    "target",
    [
        "/product/2?utm_source=a&gclid=b",
        "/nothing",
        "/product/2;x",
    ],
)
def test_an_address_that_no_page_links_to_is_not_found(client: Any, target: str) -> None:
    """The map knows the spellings it hands out and no others, so a crawler that invents URLs is seen."""
    assert client.get(f"https://shop.test{target}").status == 404


def test_every_spelling_of_a_page_gives_the_same_bytes(web: ToyWeb, client: Any) -> None:
    """A page's spellings differ in their address only."""
    page = max(web.truth.pages.values(), key=lambda page: len(page.spellings))
    bodies = {client.get(url).payload for url in page.spellings}
    assert len(page.spellings) > 2
    assert len(bodies) == 1


def test_head_sends_no_body(client: Any) -> None:
    """The length is that of the body which GET would give."""
    head = client.get("https://shop.test/about", method="HEAD")
    assert head.payload == b""
    assert int(head.field("content-length")) == len(client.get("https://shop.test/about").payload)


@pytest.mark.parametrize(
    ("url", "status"),
    [
        (f"{ODD}/missing", 404),
        (f"{ODD}/gone", 410),
        (f"{ODD}/nowhere", 302),
        (f"{ODD}/broken", 500),
        ("http://down.shop.test/robots.txt", 503),
        ("http://news.shop.test/robots.txt", 404),
        ("http://soft.shop.test/robots.txt", 404),
        ("http://soft.shop.test/what/ever", 200),
        ("http://nobody.shop.test.invalid/", 404),
    ],
)
def test_plain_statuses(web: ToyWeb, client: Any, url: str, status: int) -> None:
    """Hosts answer with their one status; a host that is not on the map is 404."""
    if "invalid" in url:
        with client.connect(f"{ODD}/") as connection:
            connection.sendall(client.request(url, "Connection: close"))
            assert connection.recv(65536).startswith(f"HTTP/1.1 {status} ".encode())
    else:
        assert client.get(url).status == status


def test_429_asks_for_seconds_and_is_fine_afterwards(client: Any) -> None:
    """Retry-After: 1, then the page."""
    first, second = client.get(f"{ODD}/busy"), client.get(f"{ODD}/busy")
    assert (first.status, first.field("retry-after"), second.status) == (429, "1", 200)


def test_503_asks_for_a_date_and_is_fine_afterwards(client: Any) -> None:
    """Retry-After as an HTTP date one to two seconds ahead, then the page."""
    now = time.time()
    first, second = client.get(f"{ODD}/closed-for-lunch"), client.get(f"{ODD}/closed-for-lunch")
    assert (first.status, second.status) == (503, 200)
    assert 0.9 < parsedate_to_datetime(first.field("retry-after")).timestamp() - now < 2.5


def test_the_flaky_page_answers_the_third_time(web: ToyWeb, client_of: Callable[[ToyWeb], Any]) -> None:
    """500, 500, 200; and again from the start once the web forgets."""
    with ToyWeb(features={Feature.FLAKY}, tls=False) as own:
        client = client_of(own)
        for _ in range(2):
            assert [client.get(f"{ODD}/flaky").status for _ in range(4)] == [500, 500, 200, 200]
            own.forget()
        assert own.requests == []


@pytest.mark.parametrize(
    ("name", "decode"),
    [
        ("gzip", gzip.decompress),
        ("deflate", zlib.decompress),
        ("chunked", unchunk),
        ("chunked-gzip", lambda payload: gzip.decompress(unchunk(payload))),
        ("until-close", bytes),
        ("not-gzip", bytes),
        ("not-pdf", bytes),
        ("untyped", bytes),
    ],
)
def test_codings_and_labels(client: Any, name: str, decode: Callable[[bytes], bytes]) -> None:
    """The body is the same kind of page, whatever it is wrapped in or called."""
    answer = client.get(f"{ODD}/{name}")
    assert decode(answer.payload).startswith(b"<!DOCTYPE html>")
    assert (answer.field("content-encoding") == "gzip") == ("gzip" in name)
    assert (answer.field("transfer-encoding") == "chunked") == ("chunked" in name)
    assert (answer.field("content-length") == "") == (name in ("chunked", "chunked-gzip", "until-close"))


def test_labels_that_lie(client: Any) -> None:
    """HTML called a PDF, and HTML called nothing."""
    assert client.get(f"{ODD}/not-pdf").field("content-type") == "application/pdf"
    assert "content-type" not in client.get(f"{ODD}/untyped").head.lower()


def test_the_cut_body_is_half_of_what_was_promised(client: Any) -> None:
    """Content-Length says twice what comes before the connection closes."""
    answer = client.get(f"{ODD}/cut")
    assert int(answer.field("content-length")) == 2 * len(answer.payload) > 0


def test_the_oversized_body_streams_20_mib(client: Any) -> None:
    """As long as it says, and long."""
    answer = client.get(f"{ODD}/oversized")
    assert int(answer.field("content-length")) == len(answer.payload) == 20 * 1024 * 1024


def test_a_client_that_leaves_the_oversized_body_ends_it(web: ToyWeb, client: Any) -> None:
    """The request is on record as not whole."""
    before = len(web.requests)
    with client.connect(f"{ODD}/oversized") as connection:
        connection.sendall(client.request(f"{ODD}/oversized"))
        assert connection.recv(10)
    assert client.get(f"{ODD}/gone").status == 410
    request = web.requests[before]
    assert request.target == "/oversized"
    assert not request.whole


def test_slow_answers_take_their_time(client: Any) -> None:
    """Half a second before the head; or eight drops."""
    for name, least in (("late", 0.5), ("drops", 0.3)):
        start = time.monotonic()
        assert client.get(f"{ODD}/{name}").status == 200
        assert time.monotonic() - start >= least


def test_the_form_answers_by_the_body(web: ToyWeb, client: Any) -> None:
    """Two bodies, two answers; GET is refused."""
    oak, elm = (client.get(web.form, method="POST", body=body) for body in (b"q=oak", b"q=elm!"))
    assert oak.payload == b"You sent 5 bytes: q=oak"
    assert elm.payload == b"You sent 6 bytes: q=elm!"
    refused = client.get(web.form)
    assert (refused.status, refused.field("allow")) == (405, "POST")


@pytest.mark.parametrize(
    ("url", "status", "location"),
    [
        ("http://shop.test/product/1", 301, "https://shop.test/product/1"),
        ("https://www.shop.test/", 301, "https://shop.test/"),
        ("http://www.shop.test/any/thing?x=1", 301, "https://shop.test/any/thing?x=1"),
        ("http://old.test/", 301, "http://new.test/"),
        ("http://moves.shop.test/chain/0", 301, "http://moves.shop.test/chain/1"),
        ("http://moves.shop.test/chain/1", 302, "2"),
        ("http://moves.shop.test/chain/4", 308, "http://moves.shop.test/chain/5"),
        ("http://moves.shop.test/circle/a", 302, "http://moves.shop.test/circle/b"),
        ("http://moves.shop.test/circle/b", 302, "http://moves.shop.test/circle/a"),
        ("http://moves.shop.test/self", 302, "http://moves.shop.test/self"),
        ("http://moves.shop.test/away", 302, "http://elsewhere.test/landing"),
        ("http://hop.shop.test/robots.txt", 302, "/policy/robots.txt"),
    ],
)
def test_redirects(client: Any, url: str, status: int, location: str) -> None:
    """Status and target of each."""
    answer = client.get(url)
    assert (answer.status, answer.field("location")) == (status, location)


def test_the_account_needs_its_cookie(client: Any) -> None:
    """It redirects to itself until the cookie comes back."""
    url = "http://moves.shop.test/account"
    first = client.get(url)
    assert (first.status, first.field("location")) == (302, "/account")
    cookie = first.field("set-cookie").partition(";")[0]
    assert client.get(url, f"Cookie: {cookie}").status == 200


def test_mirrors_have_the_same_bytes_and_print_views_the_same_text(web: ToyWeb, client: Any) -> None:
    """What the truth calls a copy is one."""

    def text(body: bytes) -> list[str]:
        return re.findall(r"<p>(.*?)</p>", body.decode())

    assert len(web.truth.mirrors) > 5
    for page, original in web.truth.mirrors.items():
        assert client.get(page).payload == client.get(original).payload
    for page, original in web.truth.print_views.items():
        one, other = client.get(page).payload, client.get(original).payload
        assert one != other
        assert text(one) == text(other)


def test_the_dead_host_refuses_connections(client: Any) -> None:
    """Both ports lead nowhere."""
    for url in ("http://dead.shop.test/", "https://dead.shop.test/"):
        with pytest.raises(ConnectionRefusedError):
            client.connect(url)


def test_the_mute_host_accepts_and_says_nothing(web: ToyWeb, client: Any) -> None:
    """Not even to robots.txt; the request is on record once it is there."""
    with client.connect("http://mute.shop.test/") as connection:
        connection.sendall(client.request("http://mute.shop.test/robots.txt"))
        connection.sendall(b"Is anybody there?")
        connection.settimeout(0.1)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        running = [request for request in web.requests if request.host == "mute.shop.test"]
        assert [request.ended for request in running] == [None]


def test_the_dying_host_answers_three_requests(client_of: Callable[[ToyWeb], Any]) -> None:
    """Then it resets connections, whatever is asked."""
    with ToyWeb(features={Feature.DYING}, tls=False) as own:
        client = client_of(own)
        urls = [f"http://dying.shop.test/{path}" for path in ("robots.txt", "", "2")]
        assert [client.get(url).status for url in urls] == [404, 200, 200]
        for url in urls:
            with pytest.raises(ConnectionResetError):
                client.get(url)


@pytest.mark.parametrize(
    ("url", "links"),
    [
        ("http://calendar.shop.test/month/2026/12", {"/month/2027/01", "/"}),
        ("http://calendar.shop.test/month/none/of/it", {"/month/2026/02", "/"}),
        ("http://deep.shop.test/more/more/", {"more/", "/"}),
        (
            "http://outlet.shop.test/list?size=large&colour=blue",
            {
                "/list?size=large&amp;colour=amber",
                "/list?size=large",
                "/list?colour=blue&amp;size=medium",
                "/list?colour=blue",
                "/list?size=large&amp;colour=blue&amp;sort=age",
                "/list?size=large&amp;colour=blue&amp;sort=name",
                "/",
            },
        ),
    ],
)
def test_traps_lead_further_in(client: Any, url: str, links: set[str]) -> None:
    """The next month, a longer path, one more filter."""
    assert set(re.findall(r'<a href="([^"]*)"', client.get(url).payload.decode())) == links


def test_the_session_trap_has_a_new_number_on_each_page(client: Any) -> None:
    """The same text behind an address that was never seen before."""
    url, seen = "http://visit.shop.test/room", set()
    for _ in range(5):
        page = client.get(url).payload.decode()
        seen.add(url)
        url = "http://visit.shop.test" + re.findall(r'<a href="(/room[^"]*)"', page)[0]
        assert url not in seen


def test_the_huge_robots_file_is_700_kb_with_its_rule_in_front(client: Any) -> None:
    """A crawler that reads 500 KiB of it has the rule that matters."""
    payload = client.get("http://vast.shop.test/robots.txt").payload
    assert len(payload) > 600_000
    assert payload.startswith(b"User-agent: *\nDisallow: /hidden\n")


def test_connections_are_kept_and_requests_pipelined(web: ToyWeb, client: Any) -> None:
    """Several requests over one connection are answered in order, and recorded as of one connection."""
    urls = ["http://news.shop.test/", "http://news.shop.test/2025/01/01/", "http://news.shop.test/2025/01/02/"]
    before = len(web.requests)
    with client.connect(urls[0]) as connection:
        connection.sendall(
            b"".join(client.request(url) for url in urls[:2]) + client.request(urls[2], "Connection: close")
        )
        raw = b"".join(iter(lambda: connection.recv(65536), b""))
    assert raw.count(b"HTTP/1.1 200 OK\r\n") == 3
    records = web.requests[before:]
    assert [record.url for record in records] == urls
    assert len({record.connection for record in records}) == 1
    assert {record.user_agent for record in records} == {"raw/1"}


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET http://shop.test/ HTTP/1.1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 413),
        (b"BREW / HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n\r\n", 405),
    ],
)
def test_what_is_no_request_is_refused(client: Any, sent: bytes, status: int) -> None:
    """With a status, and the connection is closed."""
    with client.connect(f"{ODD}/") as connection:
        connection.sendall(sent)
        raw = b"".join(iter(lambda: connection.recv(65536), b""))
    assert raw.startswith(f"HTTP/1.1 {status} ".encode())


def test_a_head_without_end_is_cut_off(client: Any) -> None:
    """64 KiB are read, not more."""

    def pour(connection: socket.socket) -> None:
        for _ in range(1000):
            connection.sendall(b"x" * 65536)

    with client.connect(f"{ODD}/") as connection, pytest.raises((ConnectionResetError, BrokenPipeError)):
        pour(connection)


def test_a_client_that_sends_half_a_head_is_no_trouble(client: Any) -> None:
    """The next one is served."""
    with client.connect(f"{ODD}/") as connection:
        connection.sendall(b"GET / HT")
    assert client.get(f"{ODD}/gone").status == 410


def test_a_client_that_does_not_trust_the_authority_is_no_trouble(web: ToyWeb, client: Any) -> None:
    """A handshake that fails leaves the server as it was."""
    address, _, port = web.resolve["shop.test:443"].partition(":")
    with socket.create_connection((address, int(port)), 5) as connection:
        connection.sendall(b"this is no TLS\r\n\r\n")
        assert b"HTTP" not in b"".join(iter(lambda: connection.recv(100), b""))
    assert client.get("https://shop.test/").status == 200
