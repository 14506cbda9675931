"""Rows 1 to 4: whatever road leads to a private address, no connection to it is opened."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Iterator
from typing import Any

import can_ada
import pytest

from crawlspace.app.routes import route_fetchers
from crawlspace.clock import SystemClock
from crawlspace.engine.robots import ask_for_rules
from crawlspace.exchange import FetchError, FetchRequest, FetchResult
from crawlspace.fetch import FetchSettings, HttpFetcher, NetworkSettings
from crawlspace.fetch.request import Unsendable, destination_of
from crawlspace.settings import convert
from crawlspace.states import UrlState
from crawlspace.urls import Identity, IdentitySettings, canonicalize, origin_of, policy_from

FORMS = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "0",
    "0.0.0.0",
    "127.255.255.254",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "198.18.0.1",
    "192.0.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[::]",
    "[::1]",
    "[::127.0.0.1]",
    "[::a9fe:a9fe]",
    "[::ffff:127.0.0.1]",
    "[::ffff:a9fe:a9fe]",
    "[::ffff:0:0]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::1]",
    "[2002:7f00:1::]",
    "[2002:a9fe:a9fe::]",
    "[2001:0:7f00:1:0:0:80ff:fffe]",
    "[2001:db8::1]",
    "[fe80::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[ff02::1]",
    "[fec0::1]",
    "\uff11\uff12\uff17.0.0.1",
    "127\u30020\u30020\u30021",
    "%31%32%37.0.0.1",
]
"""Spellings of private addresses; numbers and full-width digits are addresses by the standard for URLs."""


@pytest.fixture
def tripwire() -> Iterator[Any]:
    """Something that listens at 127.0.0.1 and [::1], and must never be reached; gives its port."""
    four = socket.create_server(("127.0.0.1", 0))
    port = four.getsockname()[1]
    six = socket.create_server(("::1", port), family=socket.AF_INET6)
    for listener in (four, six):
        listener.setblocking(False)
    yield port
    for listener in (four, six):
        with pytest.raises(BlockingIOError):
            listener.accept()
        listener.close()


def assert_refused(web: Any, urls: list[str]) -> None:
    """Every one of these is known, and was refused at the door."""
    stories = [web.story(url) for url in urls]
    assert {(story.state, story.reason) for story in stories} == {(UrlState.DEAD, "address_refused")}


def test_row_1_every_form_is_refused_as_a_link_of_a_page(web: Any, tripwire: int) -> None:
    urls = [f"http://{form}:{tripwire}/x" for form in FORMS]
    web.page("http://a.test/", *urls)
    web.crawl("http://a.test/", scope__strategy="any", robots__obey=False)
    assert_refused(web, urls)
    assert set(web.urls) == {"http://a.test/"}


def test_row_1_every_form_is_refused_as_the_target_of_a_redirect(web: Any, tripwire: int) -> None:
    urls = [f"http://{form}:{tripwire}/x" for form in FORMS]
    web.page("http://a.test/", *(f"/{number}" for number in range(len(urls))))
    for number, url in enumerate(urls):
        web.redirect(f"http://a.test/{number}", url.encode())
    web.crawl("http://a.test/", scope__strategy="any", robots__obey=False)
    readable = [url for url in urls if url.isascii()]
    assert_refused(web, readable)


def test_row_1_every_form_is_refused_in_a_sitemap(web: Any, tripwire: int) -> None:
    urls = [f"http://{form}:{tripwire}/x" for form in FORMS]
    entries = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    web.put("http://a.test/robots.txt", b"Sitemap: http://a.test/s.xml\n", b"Content-Type: text/plain")
    web.put("http://a.test/s.xml", f"<urlset>{entries}</urlset>".encode(), b"Content-Type: application/xml")
    web.page("http://a.test/")
    web.crawl("http://a.test/", scope__strategy="any")
    assert {url for url in web.urls if "a.test" not in url} == set()


def test_row_1_no_robots_file_is_read_from_a_private_address(web: Any, tripwire: int) -> None:
    """Neither its own, nor where another host's robots.txt redirects to."""
    identity = Identity(policy_from(IdentitySettings()))

    async def test() -> None:
        network = NetworkSettings(**{name[8:]: value for name, value in web.settings().items() if "network" in name})
        fetcher = HttpFetcher(FetchSettings(), network, SystemClock(), user_agent="crawlspace-test/1")

        async def fetch(url: str) -> FetchResult:
            return await fetcher.fetch(FetchRequest(url))

        for form in FORMS:
            url = canonicalize(f"http://{form}:{tripwire}/robots.txt")
            web.redirect("http://a.test/robots.txt", url.encode())
            for origin in (origin_of(url), "http://a.test"):
                answers = await ask_for_rules(origin, fetch, identity, 5)
                assert answers[-1].error is FetchError.ADDRESS_REFUSED, (form, origin)
        await fetcher.close()

    asyncio.run(test())
    assert {origin_of(url) for url in web.urls} == {"http://a.test"}


@pytest.mark.parametrize("kind", ["http", "impersonate", "service"])
def test_row_1_every_form_is_refused_on_the_routes_of_blocked_pages(web: Any, tripwire: int, kind: str) -> None:
    """Also where a library connects for us, and where a service is asked to."""
    options = {"url": f"http://127.0.0.1:{tripwire}/"} if kind == "service" else {}
    if kind == "impersonate":
        pytest.importorskip("curl_cffi")
    settings = convert({"contact": "x", "routes": {"way": {"kind": kind, **options}}}, "test")

    async def test() -> None:
        fetcher = route_fetchers(settings, SystemClock())["way"]
        for form in FORMS:
            url = canonicalize(f"http://{form}:{tripwire}/x")
            answer = await fetcher.fetch(FetchRequest(url))
            assert answer.error is FetchError.ADDRESS_REFUSED, form
        await fetcher.close()

    asyncio.run(test())


def test_row_1_a_crawl_that_meets_a_private_host_ends_without_it(web: Any, tripwire: int) -> None:
    web.page("http://a.test/", f"http://127.0.0.1:{tripwire}/x")
    web.crawl("http://a.test/", scope__strategy="any", budget__seconds=3)
    assert_refused(web, [f"http://127.0.0.1:{tripwire}/x"])


@pytest.mark.parametrize("kind", ["http", "https", "socks5", "socks5h"])
def test_row_1_no_proxy_is_asked_for_any_form(kind: str, tripwire: int) -> None:
    network = NetworkSettings(proxy=f"{kind}://127.0.0.1:{tripwire}", proxy_allow=["127.0.0.1"])

    async def test() -> None:
        fetcher = HttpFetcher(FetchSettings(), network, SystemClock(), user_agent="crawlspace-test/1")
        for form in FORMS:
            result = await fetcher.fetch(FetchRequest(str(can_ada.parse(f"http://{form}:{tripwire}/x"))))
            assert result.error is FetchError.ADDRESS_REFUSED, form
        await fetcher.close()

    asyncio.run(test())


def test_row_1_a_seed_that_names_a_private_address_is_refused_too(web: Any, tripwire: int) -> None:
    web.crawl(f"http://127.0.0.1:{tripwire}/", robots__obey=False)
    assert_refused(web, [f"http://127.0.0.1:{tripwire}/"])


def test_row_2_a_name_that_changes_between_two_lookups_leads_to_no_private_address(tripwire: int) -> None:
    """Public and private in every order; the address that was judged is the one connected to."""
    chance = random.Random(3)

    async def test() -> None:
        network = NetworkSettings(dns_ttl=0, dns_negative_ttl=0)
        limits = FetchSettings(connect_timeout=0.05)
        fetcher = HttpFetcher(limits, network, SystemClock(), user_agent="crawlspace-test/1")

        async def lookup(name: str) -> list[str]:
            pool = ["192.88.99.1", "127.0.0.1", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"]
            return chance.sample(pool, chance.randrange(1, 3))

        fetcher.resolver.lookup = lookup
        for _ in range(40):
            result = await fetcher.fetch(FetchRequest(f"http://rebinding.test:{tripwire}/"))
            assert result.error in (
                FetchError.ADDRESS_REFUSED,
                FetchError.CONNECT_TIMEOUT,
                FetchError.CONNECT,
                FetchError.LOCAL,
            )
        await fetcher.close()

    asyncio.run(test())


CONFUSING = [
    "http://127.0.0.1:{port}\\@192.88.99.1/",
    "http://192.88.99.1@127.0.0.1:{port}/",
    "http://192.88.99.1:80@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}#@192.88.99.1/",
    "http://127.0.0.1:{port}?@192.88.99.1/",
    "http:127.0.0.1:{port}/",
    "http:/\\127.0.0.1:{port}/",
    "\\\\127.0.0.1:{port}/",
    "//127.0.0.1:{port}/",
    "ht\ntp://127.0.0.1:{port}/",
    "  http://127.0.0.1:{port}/  ",
    "http://127.0.0.1\t:{port}/",
    "HTTP://127.0.0.1:{port}/",
    "http://%3127.0.0.1:{port}/",
    "http://[::ffff:7f00:0001]:{port}/",
    "http://127.0.0.1.:{port}/",
]


@pytest.mark.parametrize("text", CONFUSING)
def test_row_3_an_address_that_parsers_read_differently_leads_nowhere(text: str, web: Any, tripwire: int) -> None:
    web.page("http://a.test/", text.format(port=tripwire))
    web.crawl("http://a.test/", scope__strategy="any", robots__obey=False)
    assert {origin_of(url) for url in web.urls} == {"http://a.test"}


def test_row_3_scope_and_connection_read_the_same_host() -> None:
    """What the sender takes apart is what the one parser wrote, or it is not sent at all."""
    chance = random.Random(4)
    signs = [
        "a",
        "1",
        ".",
        "/",
        "\\",
        "@",
        ":",
        "?",
        "#",
        "%2f",
        "%40",
        "[",
        "]",
        "\t",
        "\u3002",
        "\u2100",
        "-",
        "_",
        "0x7f",
    ]
    read = 0
    for _ in range(20_000):
        text = "http://" + "".join(chance.choices(signs, k=chance.randrange(1, 12)))
        url = canonicalize(text, base=None) if can_ada.can_parse(text) else None
        if url is None:
            continue
        parsed = can_ada.parse(url)
        try:
            destination = destination_of(url.partition("#")[0])
        except Unsendable:
            continue
        read += 1
        assert destination.authority == parsed.host
        assert destination.origin.host == parsed.hostname
    assert read > 1000


LOCATIONS = [
    b"file:///etc/passwd",
    b"gopher://127.0.0.1/_x",
    b"ftp://a.test/",
    b"javascript:alert(1)",
    b"data:text/html,x",
    b"ws://a.test/",
    b"jar:http://a.test/x",
]


@pytest.mark.parametrize("location", LOCATIONS)
def test_row_4_a_redirect_to_another_scheme_is_the_end(location: bytes, web: Any) -> None:
    web.redirect("http://a.test/", location)
    web.crawl("http://a.test/", scope__strategy="any")
    story = web.story("http://a.test/")
    assert (story.state, story.reason) == (UrlState.DEAD, "bad_location")


def test_row_4_a_redirect_without_a_scheme_keeps_the_sources(web: Any) -> None:
    web.redirect("http://a.test/", b"//b.test/x")
    web.page("http://b.test/x")
    web.crawl("http://a.test/", scope__strategy="any")
    assert web.story("http://b.test/x").state is UrlState.DONE


def test_row_4_user_information_in_a_redirect_is_dropped_and_never_sent(web: Any) -> None:
    web.redirect("http://a.test/", b"http://robot:hush@b.test/x")
    web.page("http://b.test/x")
    web.crawl("http://a.test/", scope__strategy="any")
    assert web.story("http://b.test/x").state is UrlState.DONE
    assert all(b"hush" not in head and b"uthorization" not in head for head in web.asked)


@pytest.mark.parametrize(
    "location", [b"/x\rSet-Cookie: a=1", b"/x%0d%0aX-Evil: 1", b"/x\tX-Evil: 1", b"/x X-Evil: 1"]
)
def test_row_4_a_location_adds_no_line_to_the_next_request(location: bytes, web: Any) -> None:
    web.redirect("http://a.test/", location)
    web.crawl("http://a.test/")
    for head in web.asked:
        names = [line.partition(b":")[0] for line in head.split(b"\r\n")[1:-2]]
        assert names == [b"Host", b"User-Agent", b"Accept", b"Accept-Encoding"]


def test_row_4_scope_and_robots_hold_on_every_hop(web: Any) -> None:
    web.page("http://a.test/", "/out", "/forbidden", "/inner")
    web.put("http://a.test/robots.txt", b"User-agent: *\nDisallow: /private\n", b"Content-Type: text/plain")
    web.redirect("http://a.test/out", b"http://b.test/")
    web.redirect("http://a.test/forbidden", b"/private/x")
    web.redirect("http://a.test/inner", b"/inner2")
    web.redirect("http://a.test/inner2", b"/private/y")
    web.crawl("http://a.test/")
    assert (web.story("http://b.test/").state, web.story("http://b.test/").reason) == (
        UrlState.SKIPPED,
        "out_of_scope",
    )
    for path in ("x", "y"):
        assert web.story(f"http://a.test/private/{path}").reason == "robots"
    assert not [url for url in web.urls if "b.test" in url or "/private" in url]


def test_the_tripwire_is_one() -> None:
    """A connection is seen, so that its absence means something."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    with socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
    accepted.close()
    listener.close()
