"""The truth is right: determined by the seed, closed under the pages' own links, and in agreement with the rules."""

from __future__ import annotations

import random
import re
from collections import deque
from collections.abc import Callable
from html import unescape
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import pytest
from protego import Protego

from crawlspace.testing.toyweb import CALM, EVERYTHING, TRAPS, Feature, Size, ToyWeb
from crawlspace.testing.toyweb.answer import Ask
from crawlspace.testing.toyweb.atlas import Atlas, Node
from crawlspace.testing.toyweb.hosts import draw
from crawlspace.testing.toyweb.prose import Href
from crawlspace.testing.toyweb.recipe import Recipe
from crawlspace.testing.toyweb.spelling import Fold, folds_of, spell
from crawlspace.urls import HostChoices, Identity, IdentitySettings, canonicalize, policy_from

LINK = re.compile(r'(?:href|src)="([^"]*)"|content="0; url=([^"]*)"')
WALKED = EVERYTHING - {Feature.OVERSIZED, Feature.SLOW, Feature.MUTE, Feature.DEAD, Feature.DYING}


def bytes_of(atlas: Atlas) -> dict[str, bytes]:
    """Every page's body as the map answers it."""
    bodies = {}
    for page in atlas.nodes:
        parts = urlsplit(page)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        bodies[page] = atlas.reply(Ask(parts.scheme, parts.hostname or "", target, before=9)).body
    return bodies


@pytest.mark.parametrize("size", list(Size))
def test_the_same_seed_gives_the_same_web(size: Size) -> None:
    """Bytes and truth; two webs of one process, and neither knows of the other."""
    one, other = (draw(Recipe(7, size)) for _ in range(2))
    assert bytes_of(one) == bytes_of(other)
    assert ToyWeb(7, size=size).truth == ToyWeb(7, size=size).truth


def test_another_seed_gives_another_web() -> None:
    """The pages are the same, what is written on them and how links are spelled is not."""
    one, other = bytes_of(draw(Recipe(1))), bytes_of(draw(Recipe(2)))
    assert one.keys() == other.keys()
    assert one["https://shop.test/product/1"] != other["https://shop.test/product/1"]
    assert ToyWeb(1).truth.page_of != ToyWeb(2).truth.page_of


def test_a_page_is_the_same_in_every_process() -> None:
    """Known bytes: chance comes from the seed by a fixed function, not from hashes that differ by process."""
    assert b"<title>Product 1</title>" in bytes_of(draw(Recipe(1)))["https://shop.test/product/1"]
    assert Recipe(1).chance("spelling", "x").randrange(10**6) == 93906


@pytest.mark.parametrize(
    ("size", "least", "most"),
    [
        (Size.SMALL, 140, 190),
        (Size.DEMO, 270, 330),
        (Size.LARGE, 1000, 1500),
    ],
)
def test_sizes(size: Size, least: int, most: int) -> None:
    """What a size promises, with and without the peculiarities, within the default depth."""
    for features in (EVERYTHING, CALM):
        truth = ToyWeb(size=size, features=features).truth
        assert least <= len(truth.reachable) <= most
        assert max(page.depth for page in truth.pages.values()) < 15


def test_a_bare_web_has_none_of_the_peculiarities() -> None:
    """Without features there is one seed, one spelling each, and nothing that fails."""
    truth = ToyWeb(features=(), tls=False).truth
    assert truth.seeds == ("http://shop.test/",)
    assert all(page.spellings == {page.id} for page in truth.pages.values())
    assert not truth.dead
    assert not truth.redirects
    assert not truth.traps
    assert not truth.lost_hosts
    assert not truth.out_of_scope


@pytest.mark.parametrize("feature", list(Feature))
def test_every_feature_changes_the_map_and_stands_alone(feature: Feature) -> None:
    """Each can be had by itself and left out by itself."""
    bare, alone = Atlas(Recipe()), draw(Recipe(features=frozenset({feature})))
    plain, without = draw(Recipe(features=frozenset())), draw(Recipe(features=EVERYTHING - {feature}))
    assert bare.nodes == {}
    assert len(alone.spellings) > len(plain.spellings) or feature is Feature.FORM
    assert len(without.spellings) < len(draw(Recipe()).spellings) or feature is Feature.FORM
    ask = Ask("http", "odd.shop.test", "/form", "POST")
    assert (alone.reply(ask).status == 200) == (feature is Feature.FORM)


def test_two_pages_at_one_address_are_refused() -> None:
    """The map cannot contradict itself."""
    atlas = draw(Recipe(features=frozenset()))
    about = atlas.nodes["https://shop.test/about"]
    wrong = Href("/help", "https://shop.test/help", about.id)
    with pytest.raises(ValueError, match=r"two pages at https://shop\.test/about"):
        atlas.add(about)
    with pytest.raises(ValueError, match=r"two pages for https://shop\.test/help"):
        atlas.add(Node("https://shop.test/stray", about.reply, links=(wrong,)))


class Walker:
    """A crawler of forty lines that shares no code with the package: regular expressions and urllib."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.robots: dict[str, Protego | None] = {}
        self.pages: set[str] = set()
        self.refused: set[str] = set()
        self.failed: dict[str, int] = {}
        self.redirects: dict[str, str] = {}

    def allowed(self, url: str) -> bool:
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(url))
        if origin not in self.robots:
            answer = self.client.get(f"{origin}/robots.txt")
            if answer.status == 302:
                answer = self.client.get(origin + answer.field("location"))
            text = answer.payload.decode() if answer.status == 200 else ""
            self.robots[origin] = None if answer.status >= 500 else Protego.parse(text)
        rules = self.robots[origin]
        return rules is not None and bool(rules.can_fetch(url, "toywalker"))

    def walk(self, seeds: list[str], inside: Callable[[str], bool]) -> None:
        queue = deque(resolve("http://x.test/", seed, "utf-8") for seed in seeds)
        known = set(queue)
        while queue:
            url = queue.popleft()
            if not inside(url):
                continue
            if not self.allowed(url):
                self.refused.add(url)
                continue
            for found in self.fetch(url):
                if found not in known:
                    known.add(found)
                    queue.append(found)

    def fetch(self, url: str) -> list[str]:
        answer, cookie = self.client.get(url), ""
        for _ in range(3):
            if answer.status in (429, 500, 503) or answer.field("set-cookie"):
                cookie = answer.field("set-cookie").partition(";")[0]
                answer = self.client.get(url, *([f"Cookie: {cookie}"] if cookie else []))
        location = answer.field("location")
        if location:
            target = resolve(url, location, "utf-8")
            self.redirects[url] = target
            return [target]
        if answer.status != 200 or len(answer.payload) < int(answer.field("content-length") or 0):
            self.failed[url] = answer.status
            return []
        self.pages.add(url)
        charset = "windows-1252" if "windows-1252" in answer.field("content-type") else "utf-8"
        text = answer.payload.decode(charset, "replace")
        return [resolve(url, unescape("".join(link)), charset) for link in LINK.findall(text)]


def resolve(base: str, text: str, charset: str) -> str:
    """What a browser makes of a link, as far as the toy web needs it."""
    parts = urlsplit(urljoin(base, text.replace("/./", "/")))
    host = (parts.hostname or "").encode("idna").decode()
    path = urlsplit(urljoin("http://x/", quote(parts.path, safe="/%~;=()!*',:@&+$"))).path or "/"
    query = quote(parts.query, safe="/%~;=()!*',:@&+$?", encoding=charset)
    return f"{parts.scheme}://{host}{path}" + (f"?{query}" if query else "")


def test_an_independent_walk_finds_exactly_the_truth(client_of: Callable[[ToyWeb], Any]) -> None:
    """Every page of the truth, every redirect, every dead URL and every fence; and the traps stay within bounds."""
    with ToyWeb(seed=3, features=WALKED) as web:
        truth, walker = web.truth, Walker(client_of(web))
        domains = (".shop.test", ".xn--bcher-kva.test", ".old.test", ".new.test")
        depth = dict.fromkeys(truth.traps, 0)

        def inside(url: str) -> bool:
            host = "." + (urlsplit(url).hostname or "")
            for prefix in truth.traps:
                if url.startswith(prefix):
                    depth[prefix] += 1
                    return depth[prefix] <= 60
            return host.endswith(domains)

        walker.walk(web.seeds, inside)
        assert truth.compare(walker.pages) == (frozenset(), frozenset())
        assert {truth.page_of[url] for url in walker.pages if not truth.trap_of(url)} == truth.reachable
        assert walker.redirects.items() - {("http://moves.shop.test/self",) * 2} == truth.redirects.items()
        assert walker.failed.keys() | {"http://moves.shop.test/self"} == truth.dead.keys() | truth.broken
        assert walker.refused - {"http://down.shop.test/"} == truth.disallowed
        assert web.trespasses() == []
        assert web.asked_robots_first() == []
        assert all(urlsplit(url).hostname != "elsewhere.test" for url in walker.pages)


def test_the_safe_url_rules_fold_every_spelling() -> None:
    """What the truth calls one page, crawlspace's own rules call one page, and no two pages are one."""
    for seed in range(1, 6):
        truth = ToyWeb(seed, size=Size.DEMO).truth
        settings = IdentitySettings(hosts=[HostChoices(**rule) for rule in truth.own_folds])
        identity = Identity(policy_from(settings))
        folded = {url: identity.identify(url).canonical for url in truth.page_of}
        assert folded == truth.page_of


def test_the_forum_needs_its_own_rule() -> None:
    """Without it the safe rules keep its spellings apart."""
    truth = ToyWeb().truth
    identity = Identity(policy_from(IdentitySettings()))
    apart = {url for url, page in truth.page_of.items() if identity.identify(url).canonical != page}
    assert {urlsplit(url).hostname for url in apart} == {"forum.shop.test"}


def test_spellings_are_of_every_kind() -> None:
    """Each fold that survives a browser is somewhere on a small web."""
    text = "\n".join(ToyWeb().truth.page_of)
    for mark in (
        "utm_source=",
        "gclid=",
        "fbclid=",
        "PHPSESSID=",
        ";jsessionid=",
        "%7E",
        "%70roduct",
        "?size=m&colour=",
    ):
        assert mark in text, mark


@pytest.mark.parametrize(
    ("page", "impossible"),
    [
        ("http://x.test/", {Fold.ORDER, Fold.PERCENT, Fold.PATH_SESSION}),
        ("http://x.test/a", {Fold.ORDER}),
        ("http://x.test/a?b=1", {Fold.ORDER}),
        ("http://x.test/a?b=1&c=2", set()),
    ],
)
def test_every_possible_fold_is_folded_back_by_the_safe_url_rules(page: str, impossible: set[Fold]) -> None:
    """A spelling is another text for the same page; some need a path or two parameters."""
    folds = folds_of(page)
    assert set(Fold) - set(folds) == impossible
    links = [spell(page, fold, random.Random(1)) for fold in folds]
    assert len({link.text for link in links}) == len(folds)
    assert {canonicalize(link.text, base=page) for link in links} == {page}
    assert {link.page for link in links} == {page}


def test_traps_are_bounded_by_depth_or_by_combinations() -> None:
    """What a crawl may fetch of each under a depth limit."""
    truth = ToyWeb(features=TRAPS, tls=False).truth
    bounds = {found.trap.kind: (found.bound(), found.bound(1)) for found in truth.traps.values()}
    assert bounds == {
        Feature.CALENDAR: (19, 0),
        Feature.SESSIONS: (19, 0),
        Feature.DEEPENING: (19, 0),
        Feature.FACETS: (27, 27),
    }


def test_compare_names_what_is_missing_and_what_is_strange() -> None:
    """Spellings count as their page, traps and failing hosts are excused."""
    truth = ToyWeb().truth
    page = max(truth.pages.values(), key=lambda page: len(page.spellings))
    others = truth.reachable - {page.id}
    excused = {"http://calendar.shop.test/month/2030/01", "http://dying.shop.test/"}
    assert truth.compare(others | excused) == (frozenset({page.id}), frozenset())
    for spelling in page.spellings:
        assert truth.compare(others | {spelling}) == (frozenset(), frozenset())
    strange = {"http://elsewhere.test/landing", "https://shop.test/cart/add?item=1", "https://shop.test/invented"}
    assert truth.compare(truth.reachable | strange) == (frozenset(), frozenset(strange))
