"""Links of PDF files: what can be clicked on, whatever else the file holds."""

from __future__ import annotations

import io

import pytest
from pypdf import PdfWriter
from pypdf.annotations import Link
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, NumberObject

from crawlspace.exchange import Headers
from crawlspace.pages import pdf
from crawlspace.pages.pdf import ADDRESS, is_pdf, pdf_links


def made(*pages: list[str]) -> bytes:
    """A file with a page for each list, and a link for each address on it."""
    writer = PdfWriter()
    for number, addresses in enumerate(pages):
        page = writer.add_blank_page(100, 100)
        for address in addresses:
            writer.add_annotation(number, Link(rect=(0, 0, 9, 9), url=address))
        if not addresses:
            plain = DictionaryObject({NameObject("/Subtype"): NameObject("/Text")})
            action = DictionaryObject({NameObject("/A"): DictionaryObject({NameObject("/S"): NameObject("/GoTo")})})
            page[NameObject("/Annots")] = ArrayObject([plain, action])
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()


def test_links_are_given_in_order_and_once_each() -> None:
    body = made(["http://a.test/1", "/relative"], [], ["http://a.test/1", "mailto:x@a.test", "http://a.test/2"])
    assert pdf_links(body, 10) == ["http://a.test/1", "/relative", "mailto:x@a.test", "http://a.test/2"]


def test_there_are_no_more_than_wanted_and_none_too_long() -> None:
    body = made(["http://a.test/" + "x" * ADDRESS, *(f"http://a.test/{n}" for n in range(9))])
    assert pdf_links(body, 3) == [f"http://a.test/{n}" for n in range(3)]


def test_pages_beyond_the_limit_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "PAGES", 1)
    assert pdf_links(made(["http://a.test/1"], ["http://a.test/2"]), 10) == ["http://a.test/1"]


@pytest.mark.parametrize("cut", [5, 200, 600, -40])
def test_what_is_broken_gives_what_could_be_read(cut: int) -> None:
    body = made(["http://a.test/1"])
    assert pdf_links(body[:cut], 10) in ([], ["http://a.test/1"])


def test_a_page_that_breaks_off_leaves_the_links_before_it() -> None:
    writer = PdfWriter(clone_from=io.BytesIO(made(["http://a.test/1"], ["http://a.test/2"])))
    writer.pages[1][NameObject("/Annots")] = ArrayObject([NumberObject(1)])
    written = io.BytesIO()
    writer.write(written)
    assert pdf_links(written.getvalue(), 10) == ["http://a.test/1"]


def test_memory_that_runs_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def hungry(_reader: object) -> list[str]:
        raise MemoryError

    monkeypatch.setattr(pdf, "_addresses", hungry)
    with pytest.raises(MemoryError):
        pdf_links(made([]), 10)


@pytest.mark.parametrize(
    ("declared", "body", "expected"),
    [
        (b"application/pdf", b"%PDF-1.7", True),
        (b"", b"\n%PDF-1.7", True),
        (b"application/octet-stream", b"%PDF-1.7", True),
        (b"text/html", b"%PDF-1.7", False),
        (b"application/pdf", b"<html>", False),
    ],
)
def test_a_file_is_one_by_its_start_unless_it_is_declared_otherwise(
    declared: bytes, body: bytes, expected: bool
) -> None:
    assert is_pdf(Headers(((b"Content-Type", declared),)), body) is expected
