"""What a page gives beside its links: opt-outs always, and by its settings forms, hints, styles and contexts."""

from __future__ import annotations

from typing import Any

from crawlspace.exchange import Headers
from crawlspace.pages.links import (
    CONTEXT_ROOM,
    CONTEXT_TEXT,
    DECLARATIONS,
    LinkContext,
    Page,
    PageSettings,
    read_page,
)
from crawlspace.pages.meta import NOTHING_SAID, Reservation
from crawlspace.types import Relation

URL = "http://site.test/dir/page.html"


def read(body: str, *headers: tuple[bytes, bytes], **limits: Any) -> Page:
    kind = (b"Content-Type", b"text/html; charset=utf-8")
    return read_page(body.encode(), URL, Headers((kind, *headers)), PageSettings(**limits))


def texts(page: Page, *relations: Relation) -> list[str]:
    return [link.url for link in page.links if not relations or link.relation in relations]


# -- what a page says of its use ----------------------------------------------------------------------------


def test_opt_outs_are_read_from_headers_and_elements() -> None:
    head = (
        '<meta name="TDM-Reservation" content="0"><meta name="tdm-policy" content="/terms">'
        '<meta name="robots" content="noimageai">'
    )
    said = read(head, (b"X-Robots-Tag", b"noai"), (b"TDM-Reservation", b"1"))
    assert (said.noai, said.noimageai, said.mining) == (True, True, Reservation(True, "/terms"))
    silent = read("<p>")
    assert (silent.noai, silent.noimageai, silent.mining) == (False, False, NOTHING_SAID)


def test_no_more_declarations_are_looked_at_than_a_page_can_need() -> None:
    many = '<meta name="tdm-reservation" content="x">' * DECLARATIONS + '<meta name="tdm-reservation" content="1">'
    assert read(many).mining.reserved is None


# -- what is read when it is asked for ----------------------------------------------------------------------


def test_forms_attributes_and_styles_are_read_only_by_their_settings() -> None:
    body = (
        '<form action="/s"><input name=q></form><form method=post action="/p"></form>'
        '<div data-href="/d" data-other="/o"></div><p data-href="words"></p><p data-href></p>'
        '<style>a{b:url(/s.png)}</style><p style="b:URL(/p.png)">x</p><a href="/a">x</a>'
    )
    assert texts(read(body)) == ["/a"]
    everything = read(body, forms=True, data_attributes=("data-href",), css=True)
    assert texts(everything) == ["/a", "/s?q=", "/d", "/s.png", "/p.png"]
    assert texts(everything, Relation.HINT) == ["/s?q=", "/d"]
    assert texts(everything, Relation.REQUISITE) == ["/s.png", "/p.png"]
    assert everything.contexts == ()


def test_a_style_sheet_is_read_for_what_it_loads() -> None:
    kind = Headers(((b"Content-Type", b"text/css; charset=latin1"),))
    body = '@import "/1.css";a{b:url(ü.png)}'.encode()
    sheet = read_page(body, URL, kind, PageSettings(css=True))
    assert (sheet.is_style, sheet.charset, texts(sheet)) == (True, "utf-8", ["/1.css", "ü.png"])
    assert not read_page(body, URL, kind).is_style
    assert texts(read_page(body, URL, kind)) == []


def test_each_link_has_its_place_its_text_and_its_kind() -> None:
    body = (
        '<head><link rel="alternate" hreflang="de" href="/de"><link rel=next href="/2"></head>'
        '<a href="/a"> Some <b>words</b></a><a href="/b"><img src=x alt="a picture"></a><a href="/c" title="tip"></a>'
        '<a href="/d"><img src=x></a><map><area href="/e" alt="a part"></map><a href="/a">again</a><iframe src="/f">'
    )
    page = read(body, context=True)
    assert texts(page) == ["/de", "/2", "/a", "/b", "/c", "/d", "/e", "/f"]
    assert page.contexts == (
        LinkContext(0, rel="alternate", hreflang="de"),
        LinkContext(1, rel="next"),
        LinkContext(2, "Some words"),
        LinkContext(3, "a picture"),
        LinkContext(4, "tip"),
        LinkContext(5),
        LinkContext(6, "a part"),
        LinkContext(7),
    )
    assert read(body).contexts == ()


def test_contexts_and_links_stay_together_where_a_link_names_the_page_itself() -> None:
    page = read('<base href="/x"><a href="#top">top</a><a href="/b">b</a>', (b"Refresh", b"1; url=/r"), context=True)
    assert [
        (link.url, context.text, context.position) for link, context in zip(page.links, page.contexts, strict=True)
    ] == [
        ("/r", "top", 0),
        ("/b", "b", 1),
        ("http://site.test/x", "top", 2),
    ]


def test_texts_are_bounded_by_link_and_by_page() -> None:
    many = "".join(f"<a href=/{number}>{'x' * 3000}</a>" for number in range(CONTEXT_ROOM // 3000 + 5))
    contexts = read(many, context=True).contexts
    assert {len(each.text) for each in contexts} == {0, CONTEXT_TEXT}
    assert contexts[-1].text == ""
