"""What is kept beside a response: how it was found, what became of it, and what was read."""

from __future__ import annotations

from msgspec.structs import replace

from crawlspace.engine.facts import Known, facts_of, with_facts
from crawlspace.engine.reading import capture_of
from crawlspace.exchange import FetchResult, Headers, Outlink
from crawlspace.pages.links import PageSettings, read_page
from crawlspace.types import (
    Address,
    Died,
    Evidence,
    Fingerprints,
    Finished,
    ProcessingFailed,
    QueuedUrl,
    Relation,
    WasRedirect,
)

HTML = b"""<html lang=de><head><title>One \xed\xa0\x80 two</title><link rel=canonical href="/own">
<meta name=robots content=noindex></head><body><a href="../b" rel=nofollow>words <b>here</b></a></body>"""
URL = QueuedUrl(7, b"k" * 16, "http://a.test/x/", 2, 3, hops=1, parent=5, relation=Relation.FRAME, generation=2)
ADDRESS = Address("http://a.test/x/", "http://a.test/x", "a.test", b"k" * 16)
HEADERS = Headers(((b"Content-Type", b"text/html; charset=utf-8"),))
RESULT = FetchResult(
    URL.url,
    1000,
    elapsed_ms=9,
    status=200,
    headers=HEADERS,
    request_head=b"GET /x/ HTTP/1.1\r\n\r\n",
    response_head=b"HTTP/1.1 200 OK\r\n\r\n",
    payload=HTML,
    body=HTML,
)
PRINTS = Fingerprints(b"t" * 32, b"f" * 32, 10)
EVIDENCE = Evidence(1000, 200, digest=b"d" * 32, elapsed_ms=9, fingerprints=PRINTS)
PLACE = (1, 2, URL)


def test_a_page_tells_all_that_was_read_of_it() -> None:
    page = read_page(HTML, URL.url, HEADERS, PageSettings(context=True))
    facts = facts_of(Known(URL, ADDRESS, RESULT, Finished(*PLACE, EVIDENCE), page))
    assert (facts.id, facts.parent, facts.depth, facts.hops, facts.relation, facts.generation) == (
        7,
        5,
        3,
        1,
        "frame",
        2,
    )
    assert (facts.canonical, facts.host, facts.outcome, facts.error) == ("http://a.test/x", "a.test", "done", None)
    assert (facts.detected, facts.charset, facts.language) == ("text/html", "utf-8", "de")
    assert (facts.body_digest, facts.text_digest, facts.body_size) == ("64" * 32, "74" * 32, len(HTML))
    assert (facts.declared, facts.noindex, facts.nofollow, facts.base) == ("/own", True, False, URL.url)
    assert Outlink("../b", "hyperlink", "words here", True) in facts.links
    facts.title.encode()


def test_links_come_without_their_words_where_those_are_not_read() -> None:
    page = read_page(HTML, URL.url, HEADERS, PageSettings())
    facts = facts_of(Known(URL, ADDRESS, RESULT, Finished(*PLACE, EVIDENCE), page))
    assert Outlink("../b", "hyperlink", "", True) in facts.links


def test_what_is_no_page_tells_what_became_of_it() -> None:
    moved = WasRedirect(*PLACE, replace(EVIDENCE, status=301, fingerprints=None), "http://a.test/y")
    facts = facts_of(Known(URL, None, replace_body(b""), moved))
    assert (facts.outcome, facts.target, facts.links, facts.base) == ("redirected", "http://a.test/y", (), None)
    assert (facts.canonical, facts.host, facts.charset, facts.text_digest) == (None, None, None, None)
    died = Died(*PLACE, replace(EVIDENCE, status=404, error="http_404", digest=None))
    assert facts_of(Known(URL, ADDRESS, RESULT, died)).error == "http_404"


def test_the_words_of_an_error_can_always_be_written() -> None:
    """Half a character, as a page's text may have it, is in no file."""
    failed = ProcessingFailed(*PLACE, replace(EVIDENCE, error="processing", detail="ValueError: \ud800!"))
    facts_of(Known(URL, ADDRESS, RESULT, failed)).detail.encode()


def test_of_several_answers_the_last_tells() -> None:
    """A page that redirected to itself first: the hops before are captures without facts."""
    captures = [capture_of(RESULT), capture_of(RESULT)]
    known = Known(URL, ADDRESS, RESULT, Finished(*PLACE, EVIDENCE))
    first, last = with_facts(captures, known)
    assert first == captures[0]
    assert last.facts == facts_of(known)
    assert with_facts([], known) == []


def replace_body(body: bytes) -> FetchResult:
    return FetchResult(URL.url, 1000, status=301, response_head=b"HTTP/1.1 301 Moved\r\n\r\n", body=body)
