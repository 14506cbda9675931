"""Revisits in archives of other makers: what has the payload of another capture is imported with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.importing import adopting
from crawlspace.archive.members import deflate
from crawlspace.archive.record import encode
from crawlspace.archive.settings import ArchiveSettings
from crawlspace.archive.warc import WarcArchive
from crawlspace.testing.clock import ManualClock
from crawlspace.types import Story

Run = Callable[..., Any]

BODY = b"<title>one</title><a href=/next>x</a>"
DIGEST = "sha1:JBHLBPPQODAATGWJVTR5E24N35GQWGMZ"
HEAD = b"HTTP/1.1 %s\r\nContent-Type: text/html\r\n\r\n"
AT = "2025-01-02T03:04:05Z"
ABSENT = "revisits whose original is not in the sources"
OTHER = "revisits whose original has another payload by now"


class Made:
    """An archive file as others write it: revisits say the URL and the date of what they refer to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def page(self, path: str, body: bytes = BODY) -> Made:
        return self._write(path, "response", HEAD % b"200 OK" + body)

    def again(self, path: str, of: str, digest: str | None = DIGEST, status: str = "200 OK", date: str = AT) -> Made:
        profile = "server-not-modified" if status.startswith("304") else "identical-payload-digest"
        fields = [("WARC-Profile", f"http://netpreserve.org/warc/1.1/revisit/{profile}")]
        fields += [("WARC-Refers-To-Target-URI", f"http://a.test{of}"), ("WARC-Refers-To-Date", date)]
        if digest is not None:
            fields.append(("WARC-Payload-Digest", digest))
        return self._write(path, "revisit", HEAD % status.encode() if status else b"", *fields)

    def _write(self, path: str, kind: str, block: bytes, *more: tuple[str, str]) -> Made:
        fields = [("WARC-Type", kind), ("WARC-Record-ID", f"<urn:uuid:{uuid4()}>"), ("WARC-Date", AT), *more]
        fields += [("WARC-Target-URI", f"http://a.test{path}"), ("Content-Type", "application/http;msgtype=response")]
        with self.path.open("ab") as file:
            file.write(deflate(encode(fields, block), 1))
        return self


def payload(crawl: Path, story: Story) -> bytes:
    assert story.evidence is not None
    assert story.evidence.pointer is not None
    archive = WarcArchive(
        CrawlDirectory(crawl).archive, ArchiveSettings(), ManualClock(), crawl="crawl", software="test"
    )
    found = archive.open(story.evidence.pointer)
    assert found.refers_to is not None
    return found.payload


def test_a_revisit_is_imported_with_the_payload_of_its_original(
    crawlspace: Run, known: Callable[..., Any], tmp_path: Path
) -> None:
    """Whichever comes first, with a head of its own or none, told by its digest or by its date."""
    first = Made(tmp_path / "a.warc.gz").again("/early", "/one")
    second = Made(tmp_path / "b.warc.gz").page("/one").again("/two", "/one").again("/bare", "/one", status="")
    second.again("/dated", "/one", digest=None)
    crawl = tmp_path / "crawl"
    ran = crawlspace("import", crawl, first.path, second.path, "--json")
    assert (ran.code, ran.facts["captures"], ran.facts["passed"]) == (0, 5, {})
    urls = [f"http://a.test/{name}" for name in ("early", "two", "bare", "dated")]
    found = known(crawl, *urls, "http://a.test/next")
    for url in urls:
        story = found.stories[url]
        assert (story.state.name, story.evidence.status, story.evidence.mime) == ("DONE", 200, "text/html")
        assert payload(crawl, story) == BODY
    assert found.stories["http://a.test/next"].state.name == "QUEUED"
    assert crawlspace("check", crawl).code == 0


def test_what_has_no_original_is_counted_by_reason(
    crawlspace: Run, known: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its URL is not known by it, so that it is fetched where it is found."""
    monkeypatch.setattr(adopting, "REVISITS_AT_ONCE", 1)
    made = (
        Made(tmp_path / "a.warc.gz")
        .page("/one")
        .again("/absent", "/never")
        .again("/other", "/one", "sha1:" + "A" * 32)
    )
    made.again("/same", "/one", status="304 Not Modified").again("/when", "/one", None, date="2024-01-01T00:00:00Z")
    made.again("/one", "/one")
    crawl = tmp_path / "crawl"
    ran = crawlspace("import", crawl, made.path, "--json")
    assert (ran.code, ran.facts["captures"], ran.facts["known"]) == (0, 1, 1)
    unchanged = "revisits that say only that a page had not changed"
    assert ran.facts["passed"] == {ABSENT: 1, OTHER: 2, unchanged: 1}
    assert known(crawl, *(f"http://a.test/{name}" for name in ("absent", "other", "same", "when"))).stories == {}


def test_a_crawl_that_has_the_original_from_before_knows_it(
    crawlspace: Run, known: Callable[..., Any], tmp_path: Path
) -> None:
    crawl = tmp_path / "crawl"
    assert crawlspace("import", crawl, Made(tmp_path / "a.warc.gz").page("/one").path).code == 0
    ran = crawlspace("import", crawl, Made(tmp_path / "b.warc.gz").again("/two", "/one").path, "--json")
    assert ran.facts["captures"] == 1
    assert payload(crawl, known(crawl, "http://a.test/two").stories["http://a.test/two"]) == BODY
