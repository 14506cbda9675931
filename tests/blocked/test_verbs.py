"""What the verbs tell of routes, and that a crawl with them is sound."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import pytest

from crawlspace.cli import main
from crawlspace.cli.routes import way_of
from crawlspace.settings import convert
from crawlspace.states import UrlState
from crawlspace.types import Relation, Story

from .conftest import Doors, agent, ways

HOME = "http://a.test/"
PAGE = "http://a.test/page"
LOST = "http://a.test/lost"

Verb = Callable[..., tuple[int, str]]


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Verb:
    """Run `crawlspace ARGUMENTS`: exit code and what it says."""

    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["crawlspace", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        assert isinstance(left.value.code, int)
        return left.value.code, capsys.readouterr().out

    return run


def test_the_verbs_tell_the_story_and_the_dead_come_back(web: Doors, verb: Verb) -> None:
    web.open(HOME, "/page", "/lost")
    web.block(PAGE, agent("third"))
    web.block(LOST, agent())
    settings = ways("second", "third", second={"requests": 7})
    web.crawl(HOME, **settings)
    web.write_config(**settings)
    place = web.directory
    told = json.loads(verb("stats", place, "--json")[1])["routes"]
    assert [(each["route"], each["requests"], each["pages"], each["blocked"]) for each in told] == [
        ("plain HTTP", 3, 1, 2),
        ("second", 2, 0, 2),
        ("third", 2, 1, 1),
    ]
    assert (told[1]["budget"], told[1]["left"], told[2]["left"]) == (7, 5, None)
    assert told[1]["bytes"] > 0
    shown = verb("stats", place)[1]
    assert "route\n" in shown
    assert "        5  second\n" in shown
    facts = json.loads(verb("explain", place, PAGE, "--json")[1])
    assert (facts["routes"], facts["way"]) == (["second", "third"], "blocked at first, went by second then third")
    assert "way           blocked at first, went by second then third" in verb("explain", place, PAGE)[1]
    assert json.loads(verb("explain", place, HOME, "--json")[1])["way"] is None
    assert verb("check", place)[0] == 0
    letter = json.loads(verb("dlq", "list", place, "--json")[1])
    assert (letter["class"], letter["detail"]) == ("blocked", "cloudflare-challenge-page")
    assert verb("dlq", "requeue", place, "--class", "blocked")[0] == 0
    web.block(LOST, agent("second"))
    web.crawl(**settings)
    story = web.story(LOST)
    assert (story.state, story.routes) == (UrlState.DONE, ("second",))
    assert verb("check", place)[0] == 0


def test_a_crawl_that_nothing_blocks_tells_of_no_routes(web: Doors, verb: Verb) -> None:
    web.open(HOME)
    web.crawl(HOME)
    assert json.loads(verb("stats", web.directory, "--json")[1])["routes"] == []
    assert "route" not in verb("stats", web.directory)[1]


def test_a_route_that_is_gone_is_told_and_its_urls_go_on(web: Doors, verb: Verb) -> None:
    web.open(HOME, "/page")
    web.block(PAGE, agent("third"))
    web.crawl(HOME, **ways("second", "third"))
    web.crawl(HOME, **ways("third"))
    assert "second (no longer set)" in verb("stats", web.directory)[1]


def test_a_way_in_words() -> None:
    rules = [{"url": "/always", "routes": ["dear"], "when": "always"}]
    settings = convert({"routes": {"dear": {"kind": "http"}}, "routing": {"rules": rules}}, "test")

    def way(url: str, *routes: str, state: UrlState = UrlState.QUEUED) -> str | None:
        return way_of(Story(1, url, "a.test", state, 1, 0, 0, 0, None, Relation.SEED, 0, routes=routes), settings)

    assert way(HOME) is None
    assert way("http://a.test/always") == "dear, at once, by a rule"
    assert way(HOME, "dear") == "blocked, goes by dear"
    assert way(HOME, "dear", "last") == "blocked, went by dear then last, which is next"
    assert way(HOME, "dear", state=UrlState.DEAD) == "blocked, was to go by dear"
