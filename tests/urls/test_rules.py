"""Each rule by itself: what it folds, and what it leaves apart."""

from __future__ import annotations

import csv
import itertools
import string
from pathlib import Path

import pytest

from crawlspace.urls import AGGRESSIVE, CONSERVATIVE, IdentitySettings, Policy, canonicalize, policy_from
from crawlspace.urls.percent import normal
from crawlspace.urls.policies import Choices, HostChoices
from crawlspace.urls.rules import HOST_STEPS, STEPS, Rules
from crawlspace.urls.trackers import TRACKERS

AGREEMENT = Path(__file__).resolve().parents[1] / "data" / "tracking-params" / "agreement.csv"
PHP_ID = "cdc993a493e899bed04f4d0c8a462a03"


def only(**choices: object) -> Policy:
    """A policy with every rule off but those given."""
    off: dict[str, object] = {
        name: False for name in Rules.__struct_fields__ if isinstance(getattr(Rules(), name), bool)
    }
    return policy_from(IdentitySettings(**{**off, **choices}))  # type: ignore[arg-type]


def form(path: str, policy: Policy = CONSERVATIVE) -> str:
    return canonicalize(f"http://a.test{path}", policy=policy).removeprefix("http://a.test")


def test_each_triplet_is_unreserved_and_decoded_or_upper_case() -> None:
    """RFC 3986, 2.3 names the unreserved characters."""
    unreserved = set("-._~" + string.ascii_letters + string.digits)
    for high, low in itertools.product(string.hexdigits, repeat=2):
        char = chr(int(high + low, 16))
        assert normal(f"%{high}{low}") == (char if char in unreserved else f"%{high}{low}".upper())
        assert normal(f"%%{high}{low}") == f"%%{high}{low}".upper()


def test_every_rule_is_a_choice_with_a_step_and_every_step_has_its_rule() -> None:
    names = set(Rules.__struct_fields__)
    assert names == set(Choices.__struct_fields__) | {"fold_into"}
    assert "fold_into" in HostChoices.__struct_fields__
    assert names == {step.setting for step in (*HOST_STEPS, *STEPS)} | {"keep"}


def test_every_step_says_why_and_where_it_is_written() -> None:
    steps = (*HOST_STEPS, *STEPS)
    assert all(step.why and step.source for step in steps)
    assert len({step.identifier for step in steps}) == len(steps)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ("/%7euser/%2f%e9", "/~user/%2F%E9"),
        ("/?q=%5c%7e#%7e", "/?q=%5C~"),
        ("/%", "/%"),
        ("/%4%31", "/%4%31"),
        ("/%%7e%7e", "/%%7E~"),
        ("/?%4?%31", "/?%4?1"),
        ("/?", "/"),
        ("/??", "/??"),
        ("/?&&", "/"),
        ("/?a=1&&b=2&", "/?a=1&b=2"),
        ("/?b=1&a=2", "/?a=2&b=1"),
        ("/?b=1&a=2&b=0&a=1", "/?a=2&a=1&b=1&b=0"),
        ("/?b&a=1&a", "/?a=1&a&b"),
        ("/?a-b=1&a=2", "/?a=2&a-b=1"),
        ("/?b=1;a=2", "/?b=1;a=2"),
        ("/?z/y&a=b", "/?z/y&a=b"),
        ("/?utm_source=x", "/"),
        ("/?utm_source", "/"),
        ("/?b=1&utm_source=x&a=2&gclid=3", "/?a=2&b=1"),
        ("/?utm%5Fsource=x&a", "/?a"),
        ("/?UTM_SOURCE=x", "/?UTM_SOURCE=x"),
        ("/?xutm_source=x", "/?xutm_source=x"),
        ("/?ref=1&s=2&source=3&t=4&from=5&__s=abcdef1", "/?__s=abcdef1&from=5&ref=1&s=2&source=3&t=4"),
        ("/page?mkt_tok=x", "/page"),
        ("/Unsubscribe?mkt_tok=x", "/Unsubscribe?mkt_tok=x"),
        ("/v/emailWebview?mkt_tok=x&a=1", "/v/emailWebview?a=1&mkt_tok=x"),
        ("/a//b/", "/a//b/"),
        ("/index.html", "/index.html"),
        ("/a#!route", "/a"),
    ],
)
def test_the_default_policy_folds_spellings_and_trackers_only(found: str, expected: str) -> None:
    assert form(found) == expected
    assert form(expected) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (f"/a;jsessionid={PHP_ID}", "/a"),
        (f"/a;JSESSIONID={PHP_ID}.node1/b;v=2?x=1", "/a/b;v=2?x=1"),
        (f"/a?x=1&y=2;jsessionid={PHP_ID}", "/a?x=1&y=2"),
        ("/a;jsessionid=short", "/a;jsessionid=short"),
        ("/a;jsessionid=", "/a;jsessionid="),
        ("/a;v=1", "/a;v=1"),
        (f"/x/..;jsessionid={PHP_ID}", f"/x/..;jsessionid={PHP_ID}"),
        (f"/.;jsessionid={PHP_ID}/b", f"/.;jsessionid={PHP_ID}/b"),
        (f"/;jsession;jsessionid={PHP_ID}id={PHP_ID}", f"/;jsession;jsessionid={PHP_ID}id={PHP_ID}"),
        (f"/?PHPSESSID={PHP_ID}", "/"),
        (f"/?a=1&phpsessid={PHP_ID}&b", "/?a=1&b"),
        ("/?phpsessid=2Aa3ASdfasfdadf", "/"),
        ("/?PHPSESSID=1", "/?PHPSESSID=1"),
        ("/?PHPSESSID=explained-in-words", "/?PHPSESSID=explained-in-words"),
        ("/?jsessionid=a63098d96360$B0$D9$A", "/"),
        ("/?ASPSESSIONIDAQBSDSRT=EOHBLBDDPFCLHKPGGKLILNAM", "/"),
        ("/?ASPSESSIONIDAQBSDSRT=abc", "/?ASPSESSIONIDAQBSDSRT=abc"),
        ("/?CFID=12412453&CFTOKEN=15501799&foo=bar", "/?foo=bar"),
        ("/?CFID=12412453", "/?CFID=12412453"),
        ("/?CFID=x&CFTOKEN=15501799", "/?CFID=x&CFTOKEN=15501799"),
        ("/?CFID=1&CFTOKEN=abc", "/?CFID=1&CFTOKEN=abc"),
        ("/?sid=9682993c8daa2c5497996114facdc805", "/"),
        ("/?sid=a8k2m4q9z1x7c3v5b6n0", "/"),
        ("/?sid=17", "/?sid=17"),
        ("/?sid=1234567890123456", "/?sid=1234567890123456"),
        ("/?sid=deadbeefdeadbeef", "/?sid=deadbeefdeadbeef"),
        ("/?sid=photographs20150102in2016", "/?sid=photographs20150102in2016"),
        ("/?NewsID=1567539&addressid=250646", "/?NewsID=1567539&addressid=250646"),
    ],
)
def test_session_ids_go_only_with_values_that_look_like_ids(found: str, expected: str) -> None:
    assert form(found) == expected
    assert form(expected) == expected


@pytest.mark.parametrize(
    ("choices", "found", "expected"),
    [
        ({"percent_encoding": True}, "/%7e?b&a&gclid=1", "/~?b&a&gclid=1"),
        ({"hash_routes": True}, "/a#!x/%7e", "/a#!x/%7e"),
        ({"hash_routes": True, "percent_encoding": True}, "/a#!x/%7e", "/a#!x/~"),
        ({"hash_routes": True}, "/a#x", "/a"),
        ({"lower_path": True}, "/A/%2F%c3B?Q=R", "/a/%2F%c3b?Q=R"),
        ({"segment_sessions": True}, "/(S(4hqa0555fwsecu455xqckv45))/m.aspx", "/m.aspx"),
        ({"segment_sessions": True}, "/(S(4hqa0555fwsecu455xqckv45))", "/"),
        ({"segment_sessions": True}, "/(4hqa0555fwsecu455xqckv45)/", "/"),
        ({"segment_sessions": True}, "/(S(short))/m.aspx", "/(S(short))/m.aspx"),
        ({"merge_slashes": True}, "//a///b//", "/a/b/"),
        ({"merge_slashes": True}, "///", "/"),
        ({"index_documents": ["index.html"]}, "/a/index.html?x", "/a/?x"),
        ({"index_documents": ["index.html"]}, "/a/index.html/", "/a/index.html/"),
        ({"index_documents": ["index.html"]}, "/a/myindex.html", "/a/myindex.html"),
        ({"index_documents": ["i"], "trailing_slash": "strip"}, "/a/i/i//", "/a"),
        ({"trailing_slash": "strip"}, "/a//", "/a"),
        ({"trailing_slash": "strip"}, "/", "/"),
        ({"trailing_slash": "add"}, "/a?x", "/a/?x"),
        ({"trailing_slash": "add"}, "/a.html", "/a.html"),
        ({"semicolons": True, "sort": True}, "/?b=1;a=2", "/?a=2&b=1"),
        ({"drop_empty_query": True}, "/?", "/"),
        ({"sort": True}, "/?", "/?"),
        ({"drop_blank_params": True}, "/?", "/?"),
        ({"drop_blank_params": True}, "/?&", "/"),
        ({"strip": ["a", "b_*"]}, "/?a=1&b_x&b=2", "/?b=2"),
        ({"strip": ["*"], "keep": ["id"]}, "/?a=1&id=7&b", "/?id=7"),
        ({"strip": ["*"]}, "/?a=1&id=7&b", "/"),
        ({"strip_trackers": True, "keep": ["utm_*"]}, "/?utm_id=1&gclid=2", "/?utm_id=1"),
        ({"strip_sessions": True, "keep": ["sid"]}, f"/?sid={PHP_ID}&PHPSESSID={PHP_ID}", f"/?sid={PHP_ID}"),
        ({"strip_sessions": True, "keep": ["CFID"]}, "/?CFID=1&CFTOKEN=15501799", "/?CFID=1"),
        ({"path_sessions": True}, f"/a;jsessionid={PHP_ID}?", "/a?"),
        (
            {},
            f"/a;jsessionid={PHP_ID}?sid={PHP_ID}&&b&a&gclid=1",
            f"/a;jsessionid={PHP_ID}?sid={PHP_ID}&&b&a&gclid=1",
        ),
    ],
)
def test_a_rule_folds_what_it_says_and_nothing_else(choices: dict[str, object], found: str, expected: str) -> None:
    policy = only(**choices)
    assert form(found, policy) == expected
    assert form(expected, policy) == expected


@pytest.mark.parametrize(
    ("choices", "found", "expected"),
    [
        ({"fold_trailing_dot": True}, "http://a.test./", "http://a.test/"),
        ({"fold_trailing_dot": True}, "http://a.test.:81/", "http://a.test:81/"),
        ({"fold_trailing_dot": True}, "http://a.test../", "http://a.test../"),
        ({"fold_trailing_dot": True}, "http://./", "http://./"),
        ({}, "http://a.test./", "http://a.test./"),
        ({"fold_www": True}, "http://www.www.a.test:8080/", "http://a.test:8080/"),
        ({"fold_www": True}, "http://www.test/", "http://www.test/"),
        ({"fold_www": True}, "http://www.test./", "http://www.test./"),
        ({"fold_www": True}, "http://wwwa.test/", "http://wwwa.test/"),
        ({"fold_scheme": True}, "http://a.test/", "https://a.test/"),
        ({"fold_scheme": True}, "http://a.test:443/", "http://a.test:443/"),
        ({"fold_scheme": True}, "https://a.test:80/", "https://a.test:80/"),
    ],
)
def test_scheme_and_host_fold_by_rule(choices: dict[str, object], found: str, expected: str) -> None:
    policy = only(**choices)
    assert canonicalize(found, policy=policy) == expected
    assert canonicalize(expected, policy=policy) == expected


def test_the_aggressive_policy_folds_what_is_one_page_on_most_sites() -> None:
    spellings = [
        "http://www.a.test/x/index.html?b=1&a=2",
        "https://a.test/x/?a=2&b=1",
        "https://a.test//x?b=1&a=2",
        "http://www.a.test./x/Default.aspx?b=1&a=2#top",
        "https://a.test/(S(4hqa0555fwsecu455xqckv45))/x?a=2&b=1",
    ]
    assert {canonicalize(url, policy=AGGRESSIVE) for url in spellings} == {"https://a.test/x?a=2&b=1"}
    assert len({canonicalize(url) for url in spellings}) == len(spellings)


def test_the_table_of_trackers_holds_the_names_that_three_lists_agree_on_and_are_clear() -> None:
    with AGREEMENT.open(encoding="utf-8", newline="") as file:
        families = {row["name"]: int(row["families"]) for row in csv.DictReader(file)}
    agreed = {name for name, count in families.items() if count >= 3}
    assert len(agreed) > 50
    assert agreed - {"__s"} == TRACKERS


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ("/a;v=1/b;w=2;v=3?v=1", "/a/b;w=2?v=1"),
        ("/a;v", "/a"),
        ("/.;v=1/a", "/.;v=1/a"),
        ("/a;w=v", "/a;w=v"),
    ],
)
def test_path_params_go_by_name_and_never_leave_a_dot_segment(found: str, expected: str) -> None:
    assert form(found, only(path_params=["v"])) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (f"/s-{PHP_ID}/a", "/a"),
        (f"/{PHP_ID}/a", f"/{PHP_ID}/a"),
        (f"/s-{PHP_ID}", "/"),
        ("/s-words/a", "/s-words/a"),
    ],
)
def test_segments_go_where_behind_their_prefix_stands_an_id(found: str, expected: str) -> None:
    assert form(found, only(id_segments=["s-"])) == expected


@pytest.mark.parametrize(
    ("found", "choices", "expected"),
    [
        ("/a/print", {}, "/a"),
        ("/a/print/print?b=1", {}, "/a?b=1"),
        ("/print", {}, "/print"),
        ("/a/print/b", {}, "/a/print/b"),
        ("/a/print/", {}, "/a/print/"),
        ("/a/print/", {"trailing_slash": "strip"}, "/a"),
        ("/a/print/", {"trailing_slash": "add"}, "/a/"),
        ("/a/b/", {"trailing_slash": "strip"}, "/a/b"),
        ("/a/print/i", {"trailing_slash": "strip", "index_documents": ["i"]}, "/a"),
        ("/a/print/i", {"index_documents": ["i"]}, "/a/print/"),
        ("/a/i/print", {"index_documents": ["i"]}, "/a/"),
    ],
)
def test_a_view_counts_as_the_page_before_it(found: str, choices: dict[str, object], expected: str) -> None:
    assert form(found, only(view_segments=["print"], **choices)) == expected
