"""What belongs to a page is fetched from any host, and nothing is followed from there; what is asked for is found."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import crawlspace
from crawlspace.cli.crawl import command
from crawlspace.pages.links import LinkContext
from crawlspace.states import UrlState
from crawlspace.types import Relation

SEED = "http://a.test/"


@pytest.fixture
def shown(web: Any) -> Any:
    """A page with requisites on three hosts."""
    web.put(
        SEED,
        '<link rel=stylesheet href="http://b.test/s.css"><img src="http://c.test/old.png">'
        '<a href="http://c.test/away">x</a><a href="/next">x</a><object data="http://c.test/frame.html"></object>',
    )
    web.page("http://a.test/next")
    web.put("http://b.test/s.css", '@import "http://b.test/2.css"; a{b:url(http://c.test/f.woff)}', "text/css")
    web.put("http://b.test/2.css", "a{b:url(http://c.test/never.png)}", "text/css")
    web.put("http://c.test/old.png", status=302, Location="http://b.test/new.png")
    web.put("http://b.test/new.png", "picture", "image/png")
    web.put("http://c.test/f.woff", "font", "font/woff")
    web.put("http://c.test/frame.html", '<a href="http://c.test/away">x</a><img src="/deep.png">')
    return web


DONE = ("http://b.test/s.css", "http://b.test/new.png", "http://c.test/f.woff", "http://c.test/frame.html")


def test_requisites_come_from_any_host_and_lead_no_further(shown: Any) -> None:
    shown.crawl(SEED, discovery__requisites=True, discovery__css=True)
    assert [shown.state(url) for url in DONE] == [UrlState.DONE] * len(DONE)
    assert shown.story("http://b.test/new.png").relation is Relation.REQUISITE
    assert shown.story("http://b.test/2.css").relation is Relation.STYLED
    for url in ("http://c.test/never.png", "http://c.test/deep.png"):
        assert shown.state(url) is None, url
    assert shown.story("http://c.test/away").reason == "out_of_scope"


def test_requisites_do_not_count_as_depth_and_includes_do_not_speak_of_them(shown: Any) -> None:
    shown.crawl(SEED, discovery__requisites=True, scope__max_depth=0, scope__include=["/nothing/"])
    assert shown.state("http://b.test/s.css") is UrlState.DONE
    assert shown.state("http://a.test/next") is UrlState.SKIPPED


def test_exclusions_hold_for_requisites_too(shown: Any) -> None:
    shown.crawl(SEED, discovery__requisites=True, scope__exclude=["c\\.test"])
    assert shown.story("http://c.test/old.png").reason == "excluded"


def test_no_requisite_is_fetched_unless_it_is_asked_for(shown: Any) -> None:
    shown.crawl(SEED)
    assert [shown.state(url) for url in DONE] == [None] * len(DONE)


def test_a_requisite_that_is_a_page_of_the_crawl_is_followed_like_one(web: Any) -> None:
    web.put(SEED, '<object data="/inner"></object>')
    web.page("http://a.test/inner", "/linked")
    web.page("http://a.test/linked")
    web.crawl(SEED, discovery__requisites=True)
    assert web.state("http://a.test/linked") is UrlState.DONE


def test_a_list_brings_the_requisites_of_its_pages_and_no_links(shown: Any) -> None:
    settings = {"discovery.requisites": True, **shown.quick()}
    crawlspace.Crawl(shown.directory, [SEED], settings=settings, follow=False).run()
    assert shown.state("http://b.test/s.css") is UrlState.DONE
    assert shown.state("http://a.test/next") is None


def test_crawl_archive_turns_requisites_on(shown: Any) -> None:
    shown.directory.mkdir()
    shown.write_config()
    ran = CliRunner().invoke(command, [SEED, "--archive", "--quiet", "--dir", str(shown.directory)])
    assert ran.exit_code == 0, ran.output
    assert [shown.state(url) for url in DONE] == [UrlState.DONE] * len(DONE)


def test_forms_and_attributes_are_followed_by_their_settings(web: Any) -> None:
    web.put(SEED, '<form action="/s"><input name=q value=1></form><p data-url="/d">x</p>')
    web.page("http://a.test/s?q=1")
    web.page("http://a.test/d")
    web.crawl(SEED, discovery__forms=True, discovery__data_attributes=["data-url"])
    assert web.state("http://a.test/s?q=1") is web.state("http://a.test/d") is UrlState.DONE


def test_a_handler_sees_what_surrounds_a_link_and_what_a_page_declares(web: Any) -> None:
    web.page(SEED, "/1", head='<meta name="robots" content="noai">')
    crawl = crawlspace.Crawl(web.directory, [SEED], settings={"discovery.context": True, **web.quick()})
    seen: list[crawlspace.Page] = []
    crawl.handler(seen.append)
    crawl.run()
    assert seen[0].contexts == [LinkContext(0, "x")]
    assert seen[0].declared.noai


def test_every_relation_that_is_stored_has_its_row_in_the_reference() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "links.md"
    rows = re.findall(r"^\| `(\w+)` \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(relation.value for relation in Relation if relation is not Relation.CANONICAL)
