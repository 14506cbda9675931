"""Whole crawls that learn: rules are proposed, applied, and undone when later pages speak against them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from crawlspace.events import Ending
from crawlspace.policy.evidence import RuleState

from .conftest import Answer, crawl, page, serving

SESSION = "v=1"


def views(target: str, *, pages: int = 40, matters: int | None = None) -> Answer:
    """Pages under two spellings; from page `matters` on the parameter decides what a page says."""
    found = re.fullmatch(r"/(\d*)(?:\?v=(\d))?", target)
    if found is None or (found[1] and int(found[1]) >= pages):
        return 404, "none"
    number, view = int(found[1] or 0), found[2] or ""
    following = [f"/{number + 1}?v=1", f"/{number + 1}?v=2"] if number + 1 < pages else []
    says = f"page {number}" + (f" view {view}" if matters is not None and number >= matters else "")
    return page(says, *following)


def variants_asked(asked: list[str]) -> int:
    """How many pages were asked for in both spellings."""
    both = {target.split("?")[0] for target in asked if "v=1" in target}
    return len(both & {target.split("?")[0] for target in asked if "v=2" in target})


def test_with_suggest_the_rule_is_proposed_and_nothing_is_changed(tmp_path: Path) -> None:
    with serving(views) as web:
        crawled = crawl(web, tmp_path / "c", mode="suggest")
    rule = crawled.rules()["site.test param v"]
    assert rule.state is RuleState.PROPOSED
    assert rule.evidence.texts == 39
    assert variants_asked(web.asked) == 39
    assert crawled.told == []


def test_with_apply_the_same_rule_is_applied_and_pages_are_fetched_once_from_then_on(tmp_path: Path) -> None:
    with serving(lambda target: views(target, pages=150)) as web:
        crawled = crawl(web, tmp_path / "c", mode="apply", checks=0)
        assert crawled.ending is Ending.FINISHED
        assert crawled.told == ["learned rules: applying site.test param v"]
        assert crawled.rules()["site.test param v"].state is RuleState.APPLIED
        assert {target.split("?")[0] for target in web.asked} >= {f"/{n}" for n in range(1, 150)}
        again = variants_asked(web.asked)
        assert again < 25
        before = len(web.asked)
        assert crawl(web, tmp_path / "c", mode="apply", checks=0).told == []
        assert len(web.asked) == before


def test_with_off_nothing_is_learned(tmp_path: Path) -> None:
    with serving(views) as web:
        assert crawl(web, tmp_path / "c", mode="off").rules() == {}


def test_a_rule_that_later_pages_speak_against_is_undone_and_no_page_is_lost(tmp_path: Path) -> None:
    with serving(lambda target: views(target, pages=80, matters=30)) as web:
        crawled = crawl(web, tmp_path / "c", mode="apply", checks=1)
    assert crawled.ending is Ending.FINISHED
    assert crawled.told[0] == "learned rules: applying site.test param v"
    assert crawled.told[-1] == "learned rules: undoing site.test param v"
    rule = crawled.rules()["site.test param v"]
    assert rule.state is RuleState.REFUTED
    assert rule.evidence.against >= 2
    asked = set(web.asked)
    assert asked >= {f"/{n}?v={view}" for n in range(30, 80) for view in (1, 2)}


def test_a_page_that_contradicts_in_time_keeps_the_rule_from_being_applied(tmp_path: Path) -> None:
    with serving(lambda target: views(target, matters=3)) as web:
        crawled = crawl(web, tmp_path / "c", mode="apply")
    assert crawled.told == []
    assert crawled.rules()["site.test param v"].state is RuleState.WATCHED
    assert variants_asked(web.asked) == 39


def slashes(target: str) -> Answer:
    """A folder and a file are one here, and the links to two pages use both."""
    found = re.fullmatch(r"/(\d*)/?", target)
    if found is None:
        return 404, "none"
    number = int(found[1] or 0)
    links = [f"/{number + 1}"] if number < 12 else []
    return page(f"page {number}", *links, *([f"/{number + 1}/"] if number in (3, 4) else []))


def test_a_slash_is_asked_about_once_as_soon_as_something_speaks_for_it(tmp_path: Path) -> None:
    with serving(slashes) as web:
        crawled = crawl(web, tmp_path / "c", mode="suggest", probe=True)
        asked = set(web.asked)
    rule = crawled.rules()["site.test slash"]
    assert (rule.state, rule.evidence.confirmed) == (RuleState.PROPOSED, 1)
    with serving(slashes) as web:
        unasked = crawl(web, tmp_path / "d", mode="suggest").rules()["site.test slash"]
        extra = asked - set(web.asked)
    assert (unasked.state, unasked.evidence.confirmed) == (RuleState.WATCHED, 0)
    assert len({target for target in extra if re.fullmatch(r"/\d+/", target)}) == 1


@pytest.mark.parametrize("mode", ["suggest", "apply"])
def test_what_says_the_same_everywhere_is_proposed_and_left_to_a_person(mode: str, tmp_path: Path) -> None:
    def gone(target: str) -> Answer:
        if target != "/" and not target.startswith("/item?id="):
            return 404, "none"
        number = int(target.partition("id=")[2] or 0)
        return page("this offer is over", *([f"/item?id={number + 1}"] if number < 30 else []))

    with serving(gone) as web:
        crawled = crawl(web, tmp_path / "c", mode=mode)
    assert crawled.rules()["site.test param id"].state is RuleState.PROPOSED
    assert crawled.told == []


SPELLINGS = (
    *("/page{n}", "/Page{n}", "/dir{n}/", "/dir{n}/index.php", "/part{n}/end", "/part{n};v={n}/end"),
    *("/s-{n}0a1b2c3d4e5f60718/own{n}", "/s-{n}f0e1d2c3b4a59687/own{n}", "/list?of={n}", "/list?by=x&of={n}"),
)
EVERY = [spelling.format(n=n) for n in range(1, 7) for spelling in SPELLINGS]


def every_kind(target: str) -> Answer:
    """Six pages of each kind, each under two spellings."""
    if target == "/":
        return page("first", *EVERY)
    path = re.sub(r";v=\d|/s-[0-9a-f]+|index\.php|by=x&", "", target).lower()
    known = re.fullmatch(r"/(?:page[1-6]|dir[1-6]/|part[1-6]/end|own[1-6]|list\?of=[1-6])", path)
    return (404, "none") if known is None else page(path)


def test_each_kind_of_rule_is_learned_and_applied_without_a_page_lost(tmp_path: Path) -> None:
    with serving(every_kind) as web:
        proposed = crawl(web, tmp_path / "c", mode="suggest")
        sure = {words for words, known in proposed.rules().items() if known.state is RuleState.PROPOSED}
        assert sure == {
            *("site.test case", "site.test index index.php", "site.test path_param v"),
            *("site.test id_segment s-", "site.test param by"),
        }
        assert len(proposed.done(EVERY)) == len(EVERY)
        before = len(web.asked)
        crawled = crawl(web, tmp_path / "c", mode="apply")
        assert len(web.asked) == before
    assert {words for words, known in crawled.rules().items() if known.state is RuleState.APPLIED} == sure
    assert len(crawled.done(EVERY)) == len(EVERY) / 2
