"""The order settings, by the order in which one host is asked."""

from __future__ import annotations

from typing import Any

import pytest

import crawlspace
from crawlspace.events import Ending
from crawlspace.policy.priority import Candidate

HOST = "http://a.test"


def paths(web: Any, *, score: Any = None, **settings: Any) -> list[str]:
    """The paths that a crawl of one host asks for, in order."""
    values = {**web.quick(), "robots.obey": False, "discovery.sitemaps": False, "host.jitter": 0}
    values |= {name.replace("__", "."): value for name, value in settings.items()}
    crawl = crawlspace.Crawl(web.directory, [f"{HOST}/"], settings=values)
    if score is not None:
        crawl.scorer(score)
    assert crawl.run().ending is Ending.FINISHED
    return [url.removeprefix(HOST) for url in web.asked]


def tree(web: Any, path: str = "/", depth: int = 3) -> None:
    """Two links on each page, down to a depth."""
    children = [f"{path}{name}/" for name in "ab"] if depth else []
    web.page(f"{HOST}{path}", *children)
    for child in children:
        tree(web, child, depth - 1)


@pytest.mark.parametrize("order", ["breadth", "arrival"])
def test_breadth_first_asks_for_all_near_pages_before_any_that_is_farther(web: Any, order: str) -> None:
    tree(web)
    asked = paths(web, priority__order=order)
    depths = [path.count("/") - 1 for path in asked]
    assert depths == sorted(depths)
    assert len(asked) == 15


def test_depth_first_follows_each_way_to_its_end(web: Any) -> None:
    tree(web)
    assert paths(web, priority__order="depth") == [
        "/",
        *("/a/", "/a/a/", "/a/a/a/", "/a/a/b/", "/a/b/", "/a/b/a/", "/a/b/b/"),
        *("/b/", "/b/a/", "/b/a/a/", "/b/a/b/", "/b/b/", "/b/b/a/", "/b/b/b/"),
    ]


def shop(web: Any) -> None:
    """A page of links with words, and behind one of them the best of all."""
    anchors = ['<a href="/imprint">Imprint</a>', '<a href="/news">News</a>', '<a href="/shop">To the <b>shop</b></a>']
    anchors += ['<a href="/cart" title="buy"><img src="x.png"></a>', '<a href="/about">About us</a>']
    web.put(f"{HOST}/", f"<html><body>{''.join(anchors)}</body></html>")
    web.put(f"{HOST}/shop", '<a href="/deal">buy this</a><a href="/terms">Terms</a>')
    for path in ("imprint", "news", "cart", "about", "deal", "terms"):
        web.page(f"{HOST}/{path}")


def test_best_first_goes_by_the_words_of_links_as_soon_as_they_are_found(web: Any) -> None:
    shop(web)
    rules = [{"text": "(?i)buy|shop", "shift": -3}, {"text": "(?i)imprint|terms", "class": 9}]
    asked = paths(web, priority__order="best", priority__rules=rules)
    assert asked == ["/", "/shop", "/cart", "/deal", "/news", "/about", "/imprint", "/terms"]


def test_a_function_sees_the_words_and_what_rules_made_of_them(web: Any) -> None:
    shop(web)
    seen: dict[str, tuple[str, int]] = {}

    def score(candidate: Candidate) -> int | None:
        seen[candidate.url.removeprefix(HOST)] = candidate.text, candidate.front_class
        return 0 if candidate.text == "About us" else None

    asked = paths(web, score=score, priority__order="best", priority__rules=[{"text": "shop", "shift": 4}])
    assert asked[:2] == ["/", "/about"]
    assert asked.index("/shop") > asked.index("/cart")
    assert seen["/shop"] == ("To the shop", 8)
    assert seen["/cart"] == ("buy", 4)


def test_without_an_order_that_asks_for_it_a_host_is_visited_for_many_urls_at_once(web: Any) -> None:
    shop(web)
    assert paths(web) == ["/", "/imprint", "/news", "/shop", "/cart", "/about", "/deal", "/terms"]
