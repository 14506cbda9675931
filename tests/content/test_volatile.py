"""What is masked in texts and links, and what is not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.content.volatile import LINK_RULES, TEXT_RULES, mask, mask_links

MASKED = [
    ("at 2024-03-01T12:00:05Z", "at {timestamp}"),
    ("at 2024-03-01 12:00:05.123456 +01:00 it", "at {timestamp} it"),
    ("Tue, 15 Nov 1994 08:12:31 GMT.", "{timestamp}."),
    ("Tue Nov 15 08:12:31 1994", "{timestamp}"),
    ("3/1/2024 1:02:03 PM CET", "{timestamp}"),
    ("1 March 2024 at 13:02 UTC", "{timestamp}"),
    ("March 1st, 2024 1:02 p.m. EST", "{timestamp}"),
    ("01.03.2024, 13:02:44", "{timestamp}"),
    ("Last updated: 12 March 2024, 20:00 by", "Last updated: {timestamp} by"),
    ("Printed on 2024-03-01 12:00", "Printed on {timestamp}"),
    ("Server time is 12:00 PM", "Server time is {timestamp}"),
    ("Page generated in 0.034 seconds.", "Page generated in {elapsed}."),
    ("Query took about 12 ms", "Query took about {elapsed}"),
    ("Load time: 3s", "Load time: {elapsed}"),
    ("3 minutes ago", "{age}"),
    ("an hour ago", "{age}"),
    ("posted just now", "posted {age}"),
    ("moments ago", "{age}"),
    ("1,234 views", "{counter}"),
    ("1.2k followers", "{counter}"),
    ("(12 users online)", "({counter})"),
    ("Page views: 1234567", "Page views: {counter}"),
    ("Hits: 55", "Hits: {counter}"),
    ("You are visitor number: 7", "You are visitor number: {counter}"),
    ("viewed 3,400 times", "viewed {counter}"),
    ("Request ID: 3f2a9c11-aaaa-bbbb-cccc-1234567890ab", "Request ID: {token}"),
    ("Ray ID: 7d5f3b9c1a2e", "Ray ID: {token}"),
    ("csrf token=abc123def456==", "csrf token={token}"),
    ("Reference #18.2d351ab8.1557333295", "Reference #{token}"),
    ("nonce 8f2e11ab99", "nonce {token}"),
]

KEPT = [
    "Concert on 12 March 2024, 20:00",
    "Opening hours 9:00 to 17:00",
    "finished in 01:23:45",
    "12 March 2024",
    "Chapter 38.2. Views",
    "3 comments, 12 replies, 5 reviews",
    "Python 3.11.7 costs 1,234 euros",
    "founded 300 years ago",
    "The Session ID identifies the user",
    "sha256 3f2a9c11aaaabbbbcccc1234567890ab",
    "the test took 30 seconds",
    "may be 12",
    "",
]


@pytest.mark.parametrize(("text", "masked"), MASKED)
def test_what_machines_write_anew_each_time_is_masked(text: str, masked: str) -> None:
    assert mask(text.encode()).decode() == masked


@pytest.mark.parametrize("text", KEPT)
def test_what_people_write_stays(text: str) -> None:
    assert mask(text.encode()).decode() == text


@pytest.mark.parametrize("text", [text for text, _ in MASKED])
def test_capital_letters_make_no_difference(text: str) -> None:
    assert re.findall(rb"{\w+}", mask(text.upper().encode())) == re.findall(rb"{\w+}", mask(text.encode()))


def test_every_rule_for_texts_has_a_case() -> None:
    assert {name for _, masked in MASKED for name in re.findall(r"{(\w+)}", masked)} == {r.name for r in TEXT_RULES}


@given(st.lists(st.sampled_from([text for text, _ in MASKED] + KEPT), max_size=8))
def test_each_part_is_masked_by_itself(parts: list[str]) -> None:
    together = mask(" | ".join(parts).encode())
    assert together == b" | ".join(mask(part.encode()) for part in parts)


LINKS = [
    ("http://a/x;jsessionid=ABCDEF0123456789?q=1", "http://a/x;jsessionid={session}?q=1"),
    ("http://a/(S(abcdefghijklmnopqrstuvwx))/p", "http://a/{session}/p"),
    ("http://a/?sid=0123456789abcdef&x=1", "http://a/?sid={session}&x=1"),
    ("http://a/?x=1&PHPSESSID=q1w2e3r4t5y6u7i8o9p0a1s2d3", "http://a/?x=1&PHPSESSID={session}"),
    ("http://a/?cfid=12345&cftoken=99887766", "http://a/?cfid={session}&cftoken={session}"),
    ("http://a/?_wpnonce=abcdef1234&x=1", "http://a/?_wpnonce={token}&x=1"),
    ("http://a/?_=1700000000000", "http://a/?_={buster}"),
]


@pytest.mark.parametrize(("link", "masked"), LINKS)
def test_sessions_tokens_and_cache_busters_are_masked_in_links(link: str, masked: str) -> None:
    assert mask_links([link]) == [masked]


def test_every_rule_for_links_has_a_case() -> None:
    assert {name for _, masked in LINKS for name in re.findall(r"{(\w+)}", masked)} == {r.name for r in LINK_RULES}


@pytest.mark.parametrize(
    "link",
    [
        "http://a/?session=keynote",
        "http://a/story?sid=20240301",
        "http://a/photo/3f2a9c11aaaabbbbcccc1234567890ab",
        "http://a/?id=3f2a9c11aaaabbbbcccc1234567890ab",
        "http://a/?timestamp=20240301120000",
        "http://a/(draft)/p",
    ],
)
def test_links_that_lead_elsewhere_stay(link: str) -> None:
    """Ids in paths and in other parameters are what galleries and archives are made of."""
    assert mask_links([link]) == [link]


def test_links_count_once_and_in_no_order() -> None:
    links = [
        "http://a/2",
        "http://a/?sid=0123456789abcdef",
        "http://a/1",
        "http://a/?sid=fedcba9876543210",
        "http://a/2",
    ]
    assert mask_links(links) == mask_links(reversed(links)) == ["http://a/1", "http://a/2", "http://a/?sid={session}"]
