"""What holds for every text under every policy."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.types import Address, Unusable
from crawlspace.urls import (
    AGGRESSIVE,
    CONSERVATIVE,
    HostChoices,
    Identity,
    IdentitySettings,
    Policy,
    UrlError,
    canonicalize,
    canonicalize_many,
    explain,
    host_name,
    policy_from,
)
from crawlspace.urls.parser import resolve
from crawlspace.urls.rules import Rules
from crawlspace.urls.sites import rewrite, site_of, split_head, stepwise

SESSION = "cdc993a493e899bed04f4d0c8a462a03"
PIECES = st.sampled_from(
    [
        *(
            "/",
            "//",
            ".",
            "..",
            "%2e",
            "%2E",
            "index.html",
            "Default.aspx",
            "A",
            "é",
            " ",
            "%",
            "%4",
            "%41",
            "%7e",
            "%2f",
        ),
        *(
            ";",
            f";jsessionid={SESSION}",
            "(S(4hqa0555fwsecu455xqckv45))",
            "?",
            "&",
            "=",
            "#",
            "#!",
            "+",
            "'",
            "|",
            "\\",
        ),
        *(
            "a",
            "b",
            "a=1",
            "b=2",
            "utm_source=x",
            "gclid",
            "mkt_tok=1",
            "unsubscribe",
            f"sid={SESSION}",
            f"PHPSESSID={SESSION}",
        ),
        *(
            "CFID=12",
            "CFTOKEN=15501799",
            "\t",
            "\n",
            "\ud800",
            "日本",
            "@",
            ":",
            "[",
            "]",
            "%30",
            "0",
            "x-1",
            "keep",
            "strip",
        ),
        *(";v=1", ";sid=1", SESSION, f"x-{SESSION}"),
    ]
)
HOSTS = st.sampled_from(
    [
        *(
            "a.test",
            "A.test.",
            "www.a.test",
            "www.www.b.test",
            "b.test:81",
            "c.test:80",
            "c.test:443",
            "127.1",
            "[::1]",
        ),
        *("u:p@a.test", "bücher.test", "xn--a", "ẞ.test", "%61.test", "a..", "www.test", "1.2.3.4.", "shop7.test"),
    ]
)
TAILS = st.lists(PIECES, max_size=14).map("".join)
URLS = st.one_of(
    st.builds("{}://{}/{}".format, st.sampled_from(["http", "https", "HTTP"]), HOSTS, TAILS),
    st.builds("{}://{}{}".format, st.sampled_from(["http", "https"]), HOSTS, TAILS),
    st.builds("{}{}".format, st.sampled_from(["", "//", "/", "mailto:", "http:"]), TAILS),
    st.text(max_size=40),
)
_NAMES = st.lists(st.sampled_from(["a", "b*", "utm_*", "sid", "strip", "*", "CFID", "CFTOKEN", "keep"]), max_size=3)
_CHOICES = {
    **{name: st.booleans() for name in Rules.__struct_fields__ if isinstance(getattr(Rules(), name), bool)},
    "index_documents": st.lists(st.sampled_from(["index.html", "Default.aspx", "a", "A", "é"]), max_size=2),
    "trailing_slash": st.sampled_from(["keep", "strip", "add"]),
    "strip": _NAMES,
    "keep": _NAMES,
    "path_params": st.lists(st.sampled_from(["v", "sid", "jsessionid", ""]), max_size=2),
    "id_segments": st.lists(st.sampled_from(["", "x-"]), max_size=2),
    "view_segments": st.lists(st.sampled_from(["a", "A", "print", "é", "index.html"]), max_size=2),
}
_HOST_CHOICES = {**_CHOICES, "fold_into": st.sampled_from(["z.test", "WWW.z.test"])}
_SUFFIXES = st.sampled_from(["a.test", "b.test", "test", "xn--a"])
_HOST_RULES = st.one_of(
    st.fixed_dictionaries({"suffix": _SUFFIXES}, optional=_HOST_CHOICES),
    st.fixed_dictionaries({"pattern": st.sampled_from(["shop[0-9]+\\.test"])}, optional=_HOST_CHOICES),
    st.fixed_dictionaries({"pattern": st.just("www\\..*")}, optional=_CHOICES),
)
POLICIES = st.one_of(
    st.just(CONSERVATIVE),
    st.just(AGGRESSIVE),
    st.builds(
        lambda choices, hosts: policy_from(
            IdentitySettings(**choices, hosts=[HostChoices(**host) for host in hosts])
        ),
        st.fixed_dictionaries({}, optional=_CHOICES),
        st.lists(_HOST_RULES, max_size=2),
    ),
)
BASE = "https://www.a.test/dir/page?q"


def form_of(text: str, base: str | None, policy: Policy) -> str | None:
    """The canonical form, if the text is a URL; any other error fails the test."""
    try:
        return canonicalize(text, base, policy)
    except UrlError as refusal:
        reason = refusal.reason
    assert reason in {"scheme", "host", "syntax", "too_long", "empty"}
    return None


@given(URLS, POLICIES)
def test_canonical_forms_are_fixed_points_and_read_as_themselves(text: str, policy: Policy) -> None:
    form = form_of(text, BASE, policy)
    if form is None:
        return
    parsed = resolve(form)
    assert parsed is not None
    assert parsed.href == form
    assert canonicalize(form, None, policy) == form


@given(URLS, POLICIES)
def test_the_quick_way_gives_what_all_steps_give(text: str, policy: Policy) -> None:
    found = Identity(policy).identify(text, BASE)
    told = explain(text, BASE, policy)
    if isinstance(found, Unusable):
        assert told.reason == found.reason
        return
    href = found.fetch_url
    site = site_of(split_head(href), policy)
    assert rewrite(href, site) == stepwise(href, site)
    assert told.canonical == found.canonical
    assert (told.changes[-1].after if told.changes else text) == found.canonical


@given(st.lists(URLS, max_size=8), POLICIES)
def test_many_links_are_read_as_each_alone(texts: list[str], policy: Policy) -> None:
    identity = Identity(policy)
    alone = [Identity(policy).identify(text, BASE) for text in texts]
    assert identity.identify_many(texts, BASE) == alone
    assert identity.identify_many([*texts, *texts], BASE) == [*alone, *alone]
    forms = [who.canonical if isinstance(who, Address) else None for who in alone]
    assert canonicalize_many(texts, BASE, policy) == forms


PAGES = ("", "f/", "f/g.html", "f/g?q=a/b#c/d", ".well-known/x", "a%20b/^|/", ";p/", "%7E/.../")


@given(
    st.lists(
        st.lists(st.sampled_from([*"aZ09_~,=+-./", "//", "/.", "..", ".", "%41", ":", "c:/"]), max_size=8).map(
            "".join
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(PAGES),
    st.sampled_from(["https://h.test/", "http://u:p@h.test:8080/"]),
    POLICIES,
)
def test_links_that_need_no_parser_are_what_it_makes_of_them(
    rest: list[str], page: str, root: str, policy: Policy
) -> None:
    base = root + page
    texts = [*rest, *(f"/{text}" for text in rest), *(f"{root}{text}" for text in rest)]
    alone = [Identity(policy).identify(text, base) for text in texts]
    identity = Identity(policy)
    identity.identify(base)  # a site that is known is read the quick way
    assert identity.identify_many(texts, base) == alone


@given(URLS, POLICIES)
def test_the_host_of_the_key_is_the_host_connected_to_after_the_folds(text: str, policy: Policy) -> None:
    found = Identity(policy).identify(text, BASE)
    if isinstance(found, Address):
        folded, _rules = policy.fold_host(host_name(found.fetch_url))
        assert host_name(found.host) == folded
        assert host_name(found.canonical) == folded


@given(URLS, POLICIES)
def test_what_is_requested_is_known_under_the_key_it_was_requested_for(text: str, policy: Policy) -> None:
    """Save for routes in fragments, which are never sent."""
    found = Identity(policy).identify(text, BASE)
    if isinstance(found, Address) and "#" not in found.canonical:
        assert Identity(policy).identify(found.fetch_url) == found


@given(
    URLS, st.sampled_from(["shift_jis", "gbk", "gb18030", "big5", "euc-jp", "iso-2022-jp", "windows-1252", "koi8-u"])
)
def test_no_encoding_makes_a_link_anything_but_ascii_or_a_refusal(text: str, encoding: str) -> None:
    found = Identity(CONSERVATIVE).identify(text, BASE, encoding=encoding)
    assert isinstance(found, Unusable) or found.fetch_url.isascii()
    assert Identity(CONSERVATIVE).identify_many([text], BASE, encoding=encoding) == [found]


UNITS = ["%", "%41", "%4", "/index.html", "/..", "/(S(4hqa0555fwsecu455xqckv45))", "&b&a", "?", "é", "@", ":", "#"]
UNITS += [";jsessionid=", "//", f";jsessionid={SESSION}", "&CFID=1", ";", "\\", "&utm_source=x", "%2e/", "Ä."]


@pytest.mark.parametrize("policy", [CONSERVATIVE, AGGRESSIVE], ids=["conservative", "aggressive"])
@pytest.mark.parametrize("unit", UNITS)
def test_the_longest_url_taken_costs_less_than_ten_milliseconds_and_longer_ones_are_refused(
    unit: str, policy: Policy
) -> None:
    text = "http://a.test/" + unit * (100_000 // len(unit))
    spent = []
    for _ in range(3):
        start = time.process_time()
        form_of(text, None, policy)
        form_of(text[:8192], None, policy)
        spent.append(time.process_time() - start)
    assert min(spent) < 0.01


@pytest.mark.parametrize("unit", UNITS)
def test_time_grows_with_the_length_and_no_faster(unit: str) -> None:
    """Eight times the length may cost 24 times the time, which a square would miss by far."""
    widest = policy_from(IdentitySettings(policy="aggressive", max_length=65536))
    short, long = ("http://a.test/" + unit * (length // len(unit)) for length in (8000, 64000))
    assert _cost(long, widest) < 24 * _cost(short, widest) + 0.002


def _cost(text: str, policy: Policy) -> float:
    spent = []
    for _ in range(5):
        start = time.process_time()
        form_of(text, None, policy)
        spent.append(time.process_time() - start)
    return min(spent)
