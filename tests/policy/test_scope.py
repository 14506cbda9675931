"""What the crawl may ask for."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.errors import ConfigError, StoreDamaged
from crawlspace.policy import scope as scopes
from crawlspace.policy.scope import Scope, ScopeSettings, Strategy
from crawlspace.types import PATH_DEPENDENT, Address, Reason, Relation
from crawlspace.urls import CONSERVATIVE, Identity

IDENTITY = Identity(CONSERVATIVE)
FREE = ScopeSettings()
SEED = "https://www.shop.example.co.uk/"


def address(text: str) -> Address:
    found = IDENTITY.identify(text)
    assert isinstance(found, Address)
    return found


def around(*seeds: str, settings: ScopeSettings = FREE) -> Scope:
    return Scope.of(settings, [address(seed) for seed in seeds])


def judge(
    scope: Scope,
    url: str,
    *,
    depth: int = 1,
    hops: int = 0,
    relation: Relation = Relation.HYPERLINK,
    nofollow: bool = False,
) -> Reason | None:
    return scope.judge(address(url), depth=depth, hops=hops, relation=relation, nofollow=nofollow)


@pytest.mark.parametrize(
    ("seed", "strategy", "inside", "outside"),
    [
        (
            SEED,
            "domain",
            ["http://example.co.uk/", "https://a.b.example.co.uk:8443/x", SEED],
            ["https://example.com/", "https://other.co.uk/", "https://co.uk/", "https://notexample.co.uk/"],
        ),
        (
            SEED,
            "host",
            ["http://www.shop.example.co.uk/x", SEED],
            ["https://shop.example.co.uk/", "https://www.shop.example.co.uk:8443/"],
        ),
        (SEED, "origin", [SEED + "x"], ["http://www.shop.example.co.uk/", "https://www.shop.example.co.uk:8443/"]),
        (SEED, "any", ["http://anything.test/", "http://127.0.0.1/"], []),
        (
            "http://127.0.0.1:8000/",
            "domain",
            ["http://127.0.0.1:8000/x"],
            ["http://127.0.0.1/", "http://127.0.0.1:8001/", "https://127.0.0.1:8000/", "http://127.0.0.2:8000/"],
        ),
        ("http://[::1]:8000/", "domain", ["http://[::1]:8000/x"], ["http://[::1]/", "http://[::2]:8000/"]),
        (
            "http://localhost:8000/",
            "domain",
            ["http://localhost:8000/x"],
            ["http://localhost/", "http://a.localhost/"],
        ),
        ("http://intranet./", "domain", ["http://intranet./x"], ["http://intranet.:81/"]),
        ("https://me.github.io/", "domain", ["http://x.me.github.io/"], ["https://you.github.io/"]),
        ("https://github.io/", "domain", ["http://github.io/"], ["https://you.github.io/"]),
        ("https://münchen.example/", "domain", ["http://www.xn--mnchen-3ya.example/"], ["http://munchen.example/"]),
    ],
)
def test_the_scope_is_drawn_around_the_seed(seed: str, strategy: str, inside: list[str], outside: list[str]) -> None:
    """By registrable domain, host or origin; an address or a single label has no domain, so its origin holds."""
    scope = around(seed, settings=ScopeSettings(strategy=Strategy(strategy)))
    assert {url: judge(scope, url) for url in inside} == dict.fromkeys(inside)
    assert {url: judge(scope, url) for url in outside} == dict.fromkeys(outside, Reason.OUT_OF_SCOPE)


def test_every_seed_has_its_own_root() -> None:
    """Domains and origins side by side."""
    scope = around("http://one.test/", "http://127.0.0.1:8000/")
    assert judge(scope, "http://a.one.test/") is None
    assert judge(scope, "http://127.0.0.1:8000/a") is None
    assert judge(scope, "http://two.test/") is Reason.OUT_OF_SCOPE


def test_a_scope_without_seeds_holds_nothing() -> None:
    """Unless the strategy is `any`."""
    assert judge(around(), "http://one.test/") is Reason.OUT_OF_SCOPE
    assert judge(around(settings=ScopeSettings(strategy=Strategy.ANY)), "http://one.test/") is None


def path(segments: int) -> str:
    return "http://one.test/" + "/".join(f"s{number}" for number in range(segments))


def query(parameters: int) -> str:
    return "http://one.test/?" + "&".join(f"p{number}=1" for number in range(parameters))


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://one.test/", None),
        ("http://one.test", None),
        (path(20), None),
        (path(20) + "/", None),
        (path(21), Reason.PATH_DEPTH),
        ("http://one.test/" + "//" * 11 + "x", Reason.PATH_DEPTH),
        (query(20), None),
        (query(21), Reason.PARAM_LIMIT),
        ("http://one.test/p?q=" + "&q=" * 20, Reason.PARAM_LIMIT),
        ("http://one.test/?a/b/c/d/e/e/e/e/e", None),
        ("http://one.test/a/a/a", None),
        ("http://one.test/a/a/a/", None),
        ("http://one.test/a/a/a/a", Reason.PATH_REPEAT),
        ("http://one.test/a/b/a/c/a/d/a", Reason.PATH_REPEAT),
        ("http://one.test/a/b/a/b/a/b", None),
        ("http://one.test/event/1/1/1/1/www.other.test", Reason.PATH_REPEAT),
        ("http://one.test/2024/01/01/01", None),
        ("http://one.test/" + "x" * (2083 - 16), None),
        ("http://one.test/" + "x" * (2084 - 16), Reason.URL_LENGTH),
    ],
)
def test_what_a_server_can_make_up_without_end_has_a_limit(url: str, reason: Reason | None) -> None:
    """Segments, parameters, repeated segments, length; a seed is taken as it was given."""
    scope = around("http://one.test/")
    assert judge(scope, url) is reason
    assert judge(scope, url, relation=Relation.SEED, depth=0) is None


def test_a_path_limit_of_zero_leaves_the_root_alone() -> None:
    """Zero means zero."""
    scope = around("http://one.test/", settings=ScopeSettings(max_path_depth=0, max_params=0))
    assert judge(scope, "http://one.test/") is None
    assert judge(scope, "http://one.test/a") is Reason.PATH_DEPTH
    assert judge(scope, "http://one.test/?a") is Reason.PARAM_LIMIT


def test_the_longer_of_the_two_spellings_counts() -> None:
    """What is requested may be longer than what is compared."""
    tracked = "http://one.test/?utm_source=" + "x" * 2100
    assert judge(around("http://one.test/"), tracked) is Reason.URL_LENGTH


@pytest.mark.parametrize(
    ("depth", "hops", "nofollow", "reason"),
    [
        (20, 10, False, None),
        (21, 0, False, Reason.DEPTH),
        (0, 11, False, Reason.REDIRECT_CHAIN),
        (0, 0, True, None),
    ],
)
def test_the_way_to_a_url_has_limits(depth: int, hops: int, nofollow: bool, reason: Reason | None) -> None:
    """Links from a seed and redirects in a row; nofollow is a hint that is not obeyed unless set."""
    scope = around("http://one.test/")
    assert judge(scope, "http://one.test/a", depth=depth, hops=hops, nofollow=nofollow) is reason


def test_nofollow_is_obeyed_when_set() -> None:
    """And says nothing of links without the mark."""
    scope = around("http://one.test/", settings=ScopeSettings(nofollow=True))
    assert judge(scope, "http://one.test/a", nofollow=True) is Reason.NOFOLLOW
    assert judge(scope, "http://one.test/a") is None


def test_a_depth_of_zero_fetches_the_seeds_and_follows_nothing() -> None:
    """What `--list` does; a seed's redirect is still at depth 0."""
    scope = around("http://one.test/", settings=ScopeSettings(max_depth=0))
    assert judge(scope, "http://one.test/", depth=0, relation=Relation.SEED) is None
    assert judge(scope, "http://one.test/b", depth=0, hops=1, relation=Relation.REDIRECT) is None
    assert judge(scope, "http://one.test/b") is Reason.DEPTH


PATTERNS = ScopeSettings(include=("/docs/", "glob:http://one.test/*.html"), exclude=(r"\.pdf$", "glob:**/private/**"))


@pytest.mark.parametrize(
    ("url", "depth", "relation", "reason"),
    [
        ("http://one.test/docs/a", 1, Relation.HYPERLINK, None),
        ("http://one.test/a.html", 1, Relation.HYPERLINK, None),
        ("http://one.test/blog/a.html", 1, Relation.HYPERLINK, Reason.NOT_INCLUDED),
        ("http://one.test/blog", 1, Relation.REDIRECT, Reason.NOT_INCLUDED),
        ("http://one.test/blog", 1, Relation.SITEMAP, Reason.NOT_INCLUDED),
        ("http://one.test/", 0, Relation.SEED, None),
        ("http://one.test/home", 0, Relation.REDIRECT, None),
        ("http://one.test/docs/a.pdf", 1, Relation.HYPERLINK, Reason.EXCLUDED),
        ("http://one.test/docs/private/a", 1, Relation.HYPERLINK, Reason.EXCLUDED),
        ("http://one.test/docs/a.pdf", 0, Relation.SEED, Reason.EXCLUDED),
    ],
)
def test_includes_hold_below_the_seeds_and_excludes_everywhere(
    url: str, depth: int, relation: Relation, reason: Reason | None
) -> None:
    """A start page need not fit the includes, or no crawl could start at the front door."""
    scope = around("http://one.test/", settings=PATTERNS)
    assert judge(scope, url, depth=depth, relation=relation) is reason


def test_patterns_see_the_canonical_url() -> None:
    """A spelling does not slip past them."""
    scope = around("http://one.test/", settings=ScopeSettings(exclude=("/private/",)))
    assert judge(scope, "http://ONE.test:80/x/../%70rivate/a#f") is Reason.EXCLUDED


def test_a_pattern_that_cannot_be_read_is_a_configuration_error() -> None:
    """It names its setting."""
    with pytest.raises(ConfigError, match=r"^scope\.include, pattern 1"):
        around(settings=ScopeSettings(include=("(",)))
    with pytest.raises(ConfigError, match=r"^scope\.exclude, pattern 2"):
        around(settings=ScopeSettings(exclude=("x", "(")))


def test_a_refusal_for_the_way_says_that_a_better_way_would_pass() -> None:
    """What a URL is, is judged first; so no URL is kept as `depth` that is out of scope anyhow."""
    scope = around("http://one.test/", settings=ScopeSettings(nofollow=True, exclude=("/x",)))
    bad = {"depth": 99, "hops": 99, "nofollow": True}
    worst = [
        scope.judge(address(url), relation=Relation.HYPERLINK, **bad)  # type: ignore[arg-type]
        for url in ("http://two.test/", "http://one.test/x", path(99), query(99))
    ]
    assert worst == [Reason.OUT_OF_SCOPE, Reason.EXCLUDED, Reason.PATH_DEPTH, Reason.PARAM_LIMIT]


def test_a_seeds_own_host_is_known_with_and_without_www() -> None:
    """And not its other hosts, nor its other ports."""
    scope = around("http://www.one.test/", "http://two.test:8080/")
    own = ["http://one.test/x", "https://www.one.test/", "http://www.two.test:8080/"]
    others = ["http://a.one.test/", "http://two.test/", "http://one.test:8080/"]
    assert [scope.is_seed_host(address(url)) for url in own] == [True] * 3
    assert [scope.is_seed_host(address(url)) for url in others] == [False] * 3


def test_the_scope_grows_by_a_new_root_and_the_old_one_stays_as_it_was() -> None:
    """A scope is a value."""
    narrow = around("http://old.test/")
    wide = narrow.widen(address("https://new.test/home"))
    assert judge(narrow, "http://www.new.test/") is Reason.OUT_OF_SCOPE
    assert judge(wide, "http://www.new.test/") is None
    assert judge(wide, "http://old.test/") is None
    assert wide.is_seed_host(address("http://new.test/"))


def test_growing_by_what_is_a_root_already_changes_nothing() -> None:
    """The same object comes back, so a caller sees that there is nothing to store."""
    scope = around("http://old.test/")
    assert scope.widen(address("http://old.test/other")) is scope
    assert scope.widen() is scope


def test_a_scope_is_restored_as_it_had_grown() -> None:
    """Equal, and with the same text."""
    scope = around(SEED, "http://127.0.0.1:8000/").widen(address("https://new.test/"))
    again = Scope.restore(FREE, scope.roots)
    assert again == scope
    assert again.roots == scope.roots
    assert json.loads(scope.roots)["seeds"]


def test_the_order_of_seeds_does_not_matter() -> None:
    """Equal scopes have equal texts."""
    one, other = around("http://a.test/", "http://b.test/"), around("http://b.test/", "http://a.test/")
    assert one == other
    assert one.roots == other.roots


def test_a_changed_strategy_is_drawn_around_the_same_seeds() -> None:
    """What is stored is where the crawl started, not how far it went."""
    stored = around("http://www.one.test/").roots
    scope = Scope.restore(ScopeSettings(strategy=Strategy.HOST), stored)
    assert judge(scope, "http://www.one.test/a") is None
    assert judge(scope, "http://one.test/a") is Reason.OUT_OF_SCOPE


@pytest.mark.parametrize("text", ["", "{", "[]", '{"seeds": [["a"]]}', '{"seeds": [], "more": 1}', "\udcff", "null"])
def test_a_stored_scope_that_cannot_be_read_is_damage(text: str) -> None:
    """It is never taken for an empty one, which would refuse all."""
    with pytest.raises(StoreDamaged, match="the stored scope cannot be read"):
        Scope.restore(FREE, text)


@given(
    st.lists(st.sampled_from(["/", "/", "a", "b", "?", "&", "=", "long-name", "//"]), max_size=16).map("".join),
    *[st.integers(least, 5) for least in (0, 0, 1)],
    st.integers(16, 60),
)
def test_counting_alone_passes_no_link_that_a_limit_refuses(
    rest: str, path_depth: int, params: int, repeat: int, length: int
) -> None:
    settings = ScopeSettings(max_path_depth=path_depth, max_params=params, path_repeat=repeat, max_url_length=length)
    found = IDENTITY.identify(f"http://a.test/{rest}")
    if isinstance(found, Address):
        verdict = around("http://a.test/", settings=settings).judge(
            found, depth=1, hops=0, relation=Relation.HYPERLINK
        )
        assert verdict is scopes._judge_shape(found, settings)


def test_remembered_verdicts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever names a million hosts does not fill the memory, and is judged the same."""
    monkeypatch.setattr(scopes, "_REMEMBERED", 3)
    scope = around("http://one.test/")
    for round_ in range(2):
        assert judge(scope, "http://a.one.test/") is None
        for number in range(5):
            assert judge(scope, f"http://h{number}.test/{round_}") is Reason.OUT_OF_SCOPE
            assert len(scope._verdicts) <= 3


@pytest.mark.parametrize(
    "wrong",
    [{"strategy": "world"}, {"max_depth": -1}, {"path_repeat": 0}, {"include": [""]}, {"exclude": "x"}, {"depth": 1}],
)
def test_settings_out_of_range_or_unknown_are_refused(wrong: dict[str, object]) -> None:
    """Each at its place."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, ScopeSettings)


def test_a_strategy_given_as_a_word_is_that_strategy() -> None:
    """Settings made in Python may spell it."""
    settings = msgspec.convert({"strategy": "any", "include": ["x"]}, ScopeSettings)
    assert (settings.strategy, settings.include) == (Strategy.ANY, ("x",))


urls = st.builds(
    "http://{}{}/{}".format,
    st.sampled_from(["one.test", "a.one.test", "two.test", "127.0.0.1", "localhost"]),
    st.sampled_from(["", ":8080"]),
    st.text("ab/?&=.1", max_size=60),
)


@given(
    st.lists(urls, max_size=4),
    st.lists(st.tuples(urls, st.integers(0, 30), st.integers(0, 15)), max_size=10),
    st.sampled_from(Strategy),
)
def test_judgements_are_stable(seeds: list[str], links: list[tuple[str, int, int]], strategy: Strategy) -> None:
    """Asked twice, in another order, or after a restart: the same answer; and a seed is always in its own scope."""
    scope = around(*seeds, settings=ScopeSettings(strategy=strategy))
    again = Scope.restore(scope.settings, scope.roots)
    first = [judge(scope, url, depth=depth, hops=hops) for url, depth, hops in links]
    assert first == [judge(scope, url, depth=depth, hops=hops) for url, depth, hops in links]
    assert first[::-1] == [judge(again, url, depth=depth, hops=hops) for url, depth, hops in reversed(links)]
    assert [judge(scope, seed, depth=0, relation=Relation.SEED) for seed in seeds] == [None] * len(seeds)
    for (url, _, _), reason in zip(links, first, strict=True):
        assert (reason in PATH_DEPENDENT) <= (judge(scope, url, depth=0) is None)


# -- what is no page ----------------------------------------------------------------------------------------


def test_a_sitemap_is_one_link_from_a_seed_whatever_lies_above_it() -> None:
    """And includes do not speak of it; all else holds."""
    scope = around("http://a.test/", settings=ScopeSettings(max_depth=1, include=("/docs/",), exclude=("/no/",)))
    as_file = Relation.SITEMAP_FILE
    assert judge(scope, "http://a.test/map.xml", depth=3, relation=as_file) is None
    assert judge(scope, "http://b.test/map.xml", relation=as_file) is Reason.OUT_OF_SCOPE
    assert judge(scope, "http://a.test/no/map.xml", relation=as_file) is Reason.EXCLUDED
    alone = around("http://a.test/", settings=ScopeSettings(max_depth=0))
    assert judge(alone, "http://a.test/map.xml", relation=as_file) is Reason.DEPTH


@pytest.mark.parametrize("relation", sorted(scopes.BELONGINGS))
def test_what_belongs_to_a_page_may_lie_anywhere_and_as_deep_as_the_page(relation: Relation) -> None:
    """Exclusions hold, and the limits of its shape."""
    scope = around("http://a.test/", settings=ScopeSettings(max_depth=0, include=("/docs/",), exclude=("/no/",)))
    assert judge(scope, "http://b.test/x.png", depth=9, relation=relation) is None
    assert judge(scope, "http://b.test/no/x.png", relation=relation) is Reason.EXCLUDED
    assert judge(scope, "http://b.test/" + "x" * 3000, relation=relation) is Reason.URL_LENGTH
    assert judge(scope, "http://b.test/x.png", hops=11, relation=relation) is Reason.REDIRECT_CHAIN


# -- what a running crawl ignores ---------------------------------------------------------------------------


def test_ignored_patterns_exclude_beside_those_of_the_settings() -> None:
    """Seeds included; in the place of those ignored before; and they stay when the scope grows."""
    scope = around("http://a.test/", settings=ScopeSettings(exclude=("/private",)))
    ignoring = scope.ignoring(["/calendar/", "glob:http://a.test/seed"])
    assert judge(scope, "http://a.test/calendar/1") is None
    assert judge(ignoring, "http://a.test/calendar/1") is Reason.EXCLUDED
    assert judge(ignoring, "http://a.test/private") is Reason.EXCLUDED
    assert judge(ignoring, "http://a.test/seed", depth=0, relation=Relation.SEED) is Reason.EXCLUDED
    grown = ignoring.widen(address("http://b.test/"))
    assert judge(grown, "http://b.test/calendar/1") is Reason.EXCLUDED
    assert judge(grown, "http://b.test/x") is None
    other = grown.ignoring(["/other"])
    assert judge(other, "http://b.test/calendar/1") is None
    assert judge(other.ignoring([]), "http://b.test/other") is None
    assert other.ignoring(["/other"]) is other


def test_an_ignored_pattern_that_cannot_be_read_is_named_as_such() -> None:
    with pytest.raises(ConfigError, match="ignore, pattern 2"):
        around("http://a.test/").ignoring(["fine", "("])


def test_a_crawl_without_seeds_has_an_empty_scope() -> None:
    assert judge(Scope.restore(FREE, None), "http://a.test/") is Reason.OUT_OF_SCOPE


def test_a_scope_takes_over_what_others_have_drawn_and_keeps_what_it_ignores() -> None:
    mine = around("http://one.test/").ignoring(("/old/",))
    theirs = around("http://one.test/", "http://two.test/")
    assert mine.as_kept(None) is mine
    assert mine.as_kept(mine.roots) is mine
    both = mine.as_kept(theirs.roots)
    assert judge(both, "http://two.test/") is None
    assert judge(both, "http://two.test/old/1") is Reason.EXCLUDED
    assert (both.roots, both.ignored) == (theirs.roots, ("/old/",))
