"""Pages whose links are read from their trees, and what all pages say of their other versions."""

from __future__ import annotations

from typing import Any

import pytest

from crawlspace.exchange import Headers
from crawlspace.pages.links import Page, PageSettings, Version, read_page
from crawlspace.types import Link

ODD = "<template></template>"
HTML = Headers(((b"Content-Type", b"text/html; charset=utf-8"),))


def read(body: str, **limits: Any) -> Page:
    return read_page(body.encode(), "http://site.test/", HTML, PageSettings(**limits))


def test_an_odd_page_gives_no_more_links_than_its_cap_either() -> None:
    page = read(ODD + "<a href=1><a href=2><a href=1><a href=1 rel=nofollow><a href=3>", max_links=2)
    assert ([link.url for link in page.links], page.links_cut) == (["1", "2"], True)
    page = read(ODD + "<a href=1#a rel=nofollow><a href=' 1'><iframe href=2></iframe><meta name=a>")
    assert list(page.links) == [Link("1")]


@pytest.mark.parametrize("start", ["", "<template></template>"])
def test_other_versions_are_those_that_the_head_names(start: str) -> None:
    page = read(
        f"<head>{start}<noscript><link rel=alternate href=a type=application/json></noscript>"
        "<link rel='Alternate' hreflang=de href=b></head><body><link rel=alternate hreflang=fr href=c>"
        "<noscript><link rel=alternate hreflang=it href=d></noscript>"
    )
    assert page.versions == (Version("a", "", "application/json"), Version("b", "de", ""))
