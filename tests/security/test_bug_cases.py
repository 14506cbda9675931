"""What public bug reports of other crawlers were about, each under its number; others are tested in their own places.

`tests/data/bug-cases` has the inputs. Where a case is told in words there, the words stand in the test.
"""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import crawlspace
from crawlspace.exchange import FetchError, FetchResult, Headers, Truncated
from crawlspace.fetch import FetchSettings
from crawlspace.fetch.response import ResponseReader
from crawlspace.pages.encoding import decode, sniff
from crawlspace.pages.links import PageSettings, read_page
from crawlspace.pages.meta import read_refresh
from crawlspace.pages.packed import pieces
from crawlspace.pages.robots import RobotsRules, RobotsSettings, judge
from crawlspace.pages.sitemap import SitemapReader
from crawlspace.policy.outcome import Kind, classify
from crawlspace.states import UrlState
from crawlspace.types import Unusable
from crawlspace.urls import Identity, IdentitySettings, policy_from

DATA = Path(__file__).parents[1] / "data" / "bug-cases"
CASES: dict[str, dict[str, Any]] = {row["id"]: row for row in json.loads((DATA / "cases.json").read_text("utf-8"))}
IDENTITY = Identity(policy_from(IdentitySettings()), bytes(32))
HTML = "text/html; charset=utf-8"


def given(case: str) -> dict[str, Any]:
    found: dict[str, Any] = CASES[case]["input"]
    return found


def fetched(text: str, base: str | None = None) -> str:
    """The address that is requested."""
    address = IDENTITY.identify(text, base)
    assert not isinstance(address, Unusable), address
    return address.fetch_url


def body_of(case: str) -> bytes:
    return base64.b64decode(given(case)["body_b64"])


def headers(fields: dict[str, str]) -> Headers:
    return Headers(tuple((name.encode(), value.encode()) for name, value in fields.items()))


def response(fields: dict[str, str], body: bytes) -> ResponseReader:
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return raw(f"HTTP/1.1 200 OK\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body)


def raw(data: bytes) -> ResponseReader:
    reader = ResponseReader(FetchSettings())
    if not reader.feed(data):
        reader.lost(clean=True)
    return reader


def announced(body: bytes) -> list[str]:
    reader = SitemapReader()
    found = [entry.url for piece in pieces(body) for entry in reader.feed(piece)]
    return found + [entry.url for entry in reader.close()]


# -- addresses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["bug-010", "bug-014", "bug-015", "bug-017"])
def test_an_address_is_requested_in_its_normal_form(case: str) -> None:
    for text, normal in given(case)["cases"]:
        assert fetched(text) == normal
        assert fetched(fetched(text)) == normal


def test_bug_009_what_is_escaped_stays_escaped_and_the_fragment_goes() -> None:
    [[text, _]] = given("bug-009")["cases"]
    assert "%2376" in fetched(text)
    assert "#" not in fetched(text)
    assert fetched(fetched(text)) == fetched(text)


def test_bug_019_relative_addresses_resolve_against_their_page() -> None:
    for base, href, result in given("bug-019")["cases"]:
        assert fetched(href, base) == result


def test_bug_012_a_redirects_target_is_requested_as_it_stands(web: Any) -> None:
    web.redirect("http://site.test/d", b"http://cdn.test/f?sig=a%27%27b")
    web.crawl("http://site.test/d", scope__strategy="any")
    assert "http://cdn.test/f?sig=a%27%27b" in web.urls


def test_bug_045_bytes_in_a_redirect_are_read_as_utf_8(web: Any) -> None:
    location = base64.b64decode(given("bug-045")["responses"]["/n/1"]["headers_b64"]["Location"])
    web.redirect("http://site.test/n/1", location)
    web.crawl("http://site.test/n/1")
    assert "http://site.test/n/1/%D9%83%D9%88%D9%87" in web.urls


def test_bug_018_links_are_relative_to_the_page_that_answered(web: Any) -> None:
    web.redirect("http://site.test/", b"/r/", status=b"303 See")
    web.page("http://site.test/r/", "test")
    web.crawl("http://site.test/")
    assert "http://site.test/r/test" in web.urls
    assert "http://site.test/test" not in web.urls


# -- robots -------------------------------------------------------------------------------------------------------


def test_bug_025_a_failing_robots_file_forbids_for_now() -> None:
    result = FetchResult("http://site.test/robots.txt", 0, status=503, body=given("bug-025")["body"].encode())
    file = judge(result, "http://site.test", 1000, RobotsSettings())
    assert file.verdict == "defer"
    assert 1000 < file.expires_at <= 1000 + 24 * 3_600_000


def test_bug_027_nothing_is_asked_for_before_the_rules_are_there(web: Any) -> None:
    web.put("http://slow.test/robots.txt", b"User-agent: *\nDisallow: /private")
    web.page("http://slow.test/open", *(f"/private/{n}" for n in range(1, 6)))
    web.crawl("http://slow.test/open", *(f"http://slow.test/private/{n}" for n in range(1, 6)))
    assert web.urls == ["http://slow.test/robots.txt", "http://slow.test/open"]
    assert all(web.story(f"http://slow.test/private/{n}").reason == "robots" for n in range(1, 6))


def test_bug_035_each_origin_has_rules_of_its_own(web: Any) -> None:
    other = f"http://site.test:{web.port}"
    web.put("http://site.test/robots.txt", b"User-agent: *\nDisallow: /")
    web.put(f"{other}/robots.txt", b"User-agent: *\nDisallow: /x")
    web.crawl("http://site.test/x", f"{other}/x", f"{other}/y", identity__hosts=[])
    assert [url for url in web.urls if "robots" not in url] == [f"{other}/y"]
    assert len([url for url in web.urls if "robots" in url]) == 2


@pytest.mark.parametrize("case", ["bug-036", "bug-037"])
def test_a_delay_of_somebody_else_or_of_no_number_is_none(case: str) -> None:
    rules = RobotsRules(given(case)["robots"], given(case)["agent"])
    assert rules.crawl_delay is None
    assert not rules.check("https://site.test/x" if case == "bug-037" else "https://site.test/a/print").allowed


# -- redirects, retries, politeness -------------------------------------------------------------------------------


def test_bug_042_a_target_that_is_linked_too_is_asked_for_once(web: Any) -> None:
    web.page("http://site.test/", "/old", "/new")
    web.redirect("http://site.test/old", b"/new", status=b"301 Moved")
    web.page("http://site.test/new")
    web.crawl("http://site.test/")
    asked = [url for url in web.urls if "robots" not in url]
    assert sorted(asked) == ["http://site.test/", "http://site.test/new", "http://site.test/old"]


def test_bug_044_a_redirect_to_itself_ends_among_the_dead_letters(web: Any) -> None:
    url = given("bug-044")["start"]
    web.redirect(url, url.encode(), status=b"301 Moved")
    web.crawl(url, retry__max=3)
    story = web.story(url)
    assert (story.state, story.reason) == (UrlState.DEAD, "redirect_loop")
    assert len(web.urls) <= 7


def test_bug_046_a_redirect_out_of_scope_is_recorded_and_not_followed(web: Any) -> None:
    web.redirect("http://in.test/b", b"http://out.test/x")
    web.crawl("http://in.test/b")
    assert not [url for url in web.urls if "out.test" in url]
    assert web.story("http://in.test/b").target == "http://out.test/x"
    assert web.story("http://out.test/x").reason == "out_of_scope"


def test_bug_047_a_chain_that_is_too_long_does_not_touch_its_end(web: Any) -> None:
    web.page("http://site.test/home")
    for number in range(1, 31):
        web.redirect(f"http://site.test/r{number}", b"/r%d" % (number + 1) if number < 30 else b"/home")
    web.crawl("http://site.test/home", "http://site.test/r1")
    assert web.story("http://site.test/home").state is UrlState.DONE
    assert len([url for url in web.urls if "/r" in url and "robots" not in url]) <= 11
    assert web.urls.count("http://site.test/home") == 1


def _failing_first(times: int, status: bytes, left: dict[str, int]) -> Callable[[bytes], bytes]:
    def answer(_head: bytes) -> bytes:
        left["n"] = left.get("n", times) - 1
        if left["n"] >= 0:
            return b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n"
        return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nok"

    return answer


@pytest.mark.parametrize(("case", "status"), [("bug-048", b"429 Slow"), ("bug-052", b"503 Later")])
def test_a_page_that_comes_at_the_second_try_is_done(case: str, status: bytes, web: Any) -> None:
    left: dict[str, int] = {}
    urls = [f"http://site.test/{n}" for n in range(1, 4 if case == "bug-048" else 2)]
    for url in urls:
        web.pages[url] = _failing_first(len(urls), status, left)
    web.crawl(*urls, retry__max=5, retry__wait=0.05, retry__wait_max=0.1, host__delay_max=0.1)
    assert all(web.story(url).state is UrlState.DONE for url in urls)
    assert len([url for url in web.urls if "robots" not in url]) == 2 * len(urls)


def test_bug_050_a_crawl_ends_whose_robots_file_never_comes(web: Any) -> None:
    web.put("http://down.test/robots.txt", b"", status=b"503 Down")
    web.crawl(
        "http://down.test/a", "http://down.test/b", robots__retry=0.1, host__failures_max=2, host__failure_wait=0.1
    )
    assert set(web.urls) == {"http://down.test/robots.txt"}
    assert {web.story(f"http://down.test/{name}").reason for name in "ab"} == {"robots_unavailable"}


def test_bug_051_a_host_that_refuses_all_is_left_after_a_few_and_slows_nobody(web: Any) -> None:
    with socket.create_server(("127.0.0.99", 0)) as taken:
        port = taken.getsockname()[1]
    dead = [f"http://127.0.0.99:{port}/{n}" for n in range(300)]
    web.page("http://site.test/", *(f"/{n}" for n in range(20)))
    web.crawl(
        "http://site.test/", *dead, retry__max=3, host__failures_max=3, host__failure_wait=0.1, robots__retry=0.1
    )
    assert {web.story(dead[0]).state, web.story(dead[299]).state} == {UrlState.DEAD}
    assert len([url for url in web.urls if "site.test" in url]) == 22


def test_bug_040_the_targets_of_redirects_keep_their_own_hosts_pace(web: Any) -> None:
    for number in range(3):
        web.redirect(f"http://a.test/{number}", b"http://b.test/%d" % number)
        web.page(f"http://b.test/{number}")
    web.crawl(*(f"http://a.test/{n}" for n in range(3)), scope__strategy="any", host__delay=0.2)
    for host in ("a.test", "b.test"):
        assert len([url for url in web.urls if host in url]) == 4
    assert web.story("http://a.test/0").state is UrlState.REDIRECTED


# -- bodies -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "encodings"),
    [("bug-056", {"utf-8"}), ("bug-057", {"utf-8"}), ("bug-058", {"gbk", "gb18030", "windows-1252"})],
)
def test_the_encoding_of_a_body_is_found_as_browsers_do(case: str, encodings: set[str]) -> None:
    body = body_of(case)
    encoding = sniff(body, headers({"Content-Type": given(case)["content_type"]}))
    assert encoding in encodings
    assert CASES[case]["expected"].get("text_contains", "") in decode(body, encoding)


@pytest.mark.parametrize("case", ["bug-060", "bug-062"])
def test_a_coding_is_undone_or_said_to_be_wrong(case: str) -> None:
    reader = response(given(case)["headers"], body_of(case))
    assert b"plain" in reader.body or b"hello brotli" in reader.body
    assert reader.error in (None, FetchError.DECODING)


@pytest.mark.parametrize("case", ["bug-061", "bug-064", "bug-071"])
def test_a_sitemap_is_unpacked_by_what_it_is_and_not_by_its_labels(case: str) -> None:
    reader = response(given(case)["headers"], body_of(case))
    assert announced(reader.body) == CASES[case]["expected"]["locs"]


def test_bug_065_a_body_that_broke_off_is_tried_again_and_kept() -> None:
    reader = raw(given("bug-065")["raw"].encode())
    assert (reader.error, reader.truncated) == (FetchError.RESET, Truncated.DISCONNECT)
    result = FetchResult(
        "http://a.test/", 0, status=200, error=reader.error, payload=reader.payload, body=reader.body
    )
    assert classify(result, 0).kind is Kind.TRANSIENT
    read = read_page(reader.body, "http://a.test/", reader.headers, PageSettings())
    assert [link.url for link in read.links] == ["/a"]


def test_bug_067_a_length_that_is_said_twice_counts_once() -> None:
    assert raw(given("bug-067")["raw"].encode()).body == b"hello"


def test_bug_068_a_header_beyond_the_limit_is_named_and_not_tried_again() -> None:
    head = b"HTTP/1.1 200 OK\r\nSet-Cookie: %s\r\nContent-Security-Policy: %s\r\nContent-Length: 2\r\n\r\nok"
    reader = raw(head % (b"x" * 9000, b"y" * 12_000))
    assert (reader.error, reader.status) == (FetchError.HEAD_TOO_LARGE, 0)
    assert "8192" in reader.detail
    result = FetchResult("http://a.test/", 0, error=reader.error, detail=reader.detail)
    assert classify(result, 0).kind is Kind.TERMINAL


def test_bug_070_a_home_page_is_no_sitemap(web: Any) -> None:
    web.put("http://site.test/robots.txt", b"Sitemap: http://site.test/sitemap.xml")
    web.redirect("http://site.test/sitemap.xml", b"/home")
    web.put("http://site.test/home", b"<html>Home</html>")
    web.page("http://site.test/")
    web.crawl("http://site.test/")
    assert web.story("http://site.test/home").state in (UrlState.DONE, UrlState.STORED)
    assert set(web.urls) == {f"http://site.test/{name}" for name in ("robots.txt", "", "sitemap.xml", "home")}


# -- what a page declares -----------------------------------------------------------------------------------------


def test_bug_073_a_page_that_refreshes_itself_is_asked_for_once(web: Any) -> None:
    web.put("http://news.test/p", given("bug-073")["html"].encode())
    web.crawl("http://news.test/p")
    assert web.urls.count("http://news.test/p") == 1
    assert web.story("http://news.test/p").state is UrlState.DONE


def test_bug_075_a_refresh_is_read_as_the_standard_says() -> None:
    targets = []
    for content in given("bug-075")["contents"]:
        found = read_refresh(content)
        targets.append(None if found is None else found.target)
    assert targets == CASES["bug-075"]["expected"]["target"]


def test_bug_076_two_ways_to_write_one_address_are_one_declaration() -> None:
    page = given("bug-076")
    read = read_page(page["html"].encode(), page["url"], headers({"Content-Type": HTML}), PageSettings())
    assert read.canonical is not None
    assert fetched(read.canonical, page["url"]) == CASES["bug-076"]["expected"]["canonical"]


def test_bug_078_pages_that_declare_the_front_page_are_pages_all_the_same(web: Any) -> None:
    canonical = b"<link rel=canonical href='http://blog.test/'>"
    web.put("http://blog.test/", canonical + b"<a href=/a>a</a><a href=/b>b</a> front")
    for name in ("a", "b"):
        web.put(f"http://blog.test/{name}", canonical + f"text of {name}".encode())
    result = web.crawl("http://blog.test/")
    assert result.counts.pages == 3


# -- traps --------------------------------------------------------------------------------------------------------


def test_bug_079_a_query_that_grows_without_end_is_bounded(web: Any) -> None:
    def longer(head: bytes) -> bytes:
        target = head.split(b" ")[1]
        body = b'<a href="' + target + b'&q=">more</a>'
        return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    url = "http://site.test/p?q="
    for _ in range(600):
        web.pages[url] = longer
        url += "&q="
    web.crawl("http://site.test/p?q=")
    assert len(web.urls) < 200


def test_bug_080_a_path_that_grows_without_end_is_bounded(web: Any) -> None:
    url = "http://site.test/event/1"
    for _ in range(100):
        web.put(url, b'<a href="1/www.other.test">x</a>')
        url = url.rpartition("/")[0] + "/1/www.other.test"
    web.crawl("http://site.test/event/1")
    assert len(web.urls) < 60


# -- cookies ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["bug-091", "bug-093"])
def test_a_cookie_goes_back_to_its_own_host_and_port_and_to_no_other(case: str, web: Any) -> None:
    host = f"site.test:{web.port}" if case == "bug-091" else "one.test"
    web.put(f"http://{host}/a", b"", b"Set-Cookie: k=v; Path=/", b"Location: /b", status=b"302 Found")
    web.page(f"http://{host}/b", "http://two.test/c")
    web.page("http://two.test/c")
    web.crawl(f"http://{host}/a", scope__strategy="any", fetch__cookies=True)
    sent = {url: b"Cookie: k=v" in head for url, head in zip(web.urls, web.asked, strict=True)}
    assert sent[f"http://{host}/b"] is True
    assert sent["http://two.test/c"] is False


def test_bug_072_a_crawl_of_a_sitemap_goes_on_where_it_stopped(web: Any) -> None:
    urls = [f"http://site.test/{n}" for n in range(30)]
    locations = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    web.put(
        "http://site.test/sitemap.xml", f"<urlset>{locations}</urlset>".encode(), b"Content-Type: application/xml"
    )
    for url in urls:
        web.page(url)
    crawlspace.Crawl(web.directory, ["http://site.test/sitemap.xml"], settings=web.settings(budget__pages=10)).run()
    assert len([url for url in web.urls if url in urls]) < 30
    result = web.crawl()
    asked = [url for url in web.urls if url in urls]
    assert sorted(asked) == sorted(urls)
    assert result.counts.pages == 31
