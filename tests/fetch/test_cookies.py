"""Cookies: what is kept, where it goes, and how much of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.fetch import cookies
from crawlspace.fetch.cookies import LONGEST_MS, MAX_LINES, MAX_PER_SITE, MAX_SENT, Jar, read_cookie, read_date
from crawlspace.fetch.request import destination_of

NOW = 1_700_000_000_000
PAGE = "https://www.a.test/dir/page?q=1"


def sent(lines: list[str] | str, to: str = PAGE, source: str = PAGE, now: int = NOW, later: int = 0) -> str:
    jar = Jar()
    jar.keep([lines] if isinstance(lines, str) else lines, destination_of(source), now)
    return jar.field(destination_of(to), now + later)


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("a=1", "a=1"),
        ("a=1; HttpOnly; SameSite=Strict; Unknown=x", "a=1"),
        ("  a =  1 2 ;x", "a=1 2"),
        ("a=", "a="),
        ("a=b=c", "a=b=c"),
        ('a="quoted; not a quote"', 'a="quoted'),
        ("a=\xe9", "a=\xe9"),
        ("a", ""),
        ("=1", ""),
        ("", ""),
        (";", ""),
        ("a=1\x00", ""),
        ("a=1\r\nSet-Cookie: b=2", ""),
        ("a=" + "x" * 4095, "a=" + "x" * 4095),
        ("a=" + "x" * 4096, ""),
    ],
)
def test_a_line_is_a_name_a_value_and_attributes(line: str, field: str) -> None:
    assert sent(line) == field


@pytest.mark.parametrize(
    ("attributes", "source", "to", "goes"),
    [
        ("", "https://www.a.test/", "https://www.a.test/", True),
        ("", "https://www.a.test/", "https://a.test/", False),
        ("", "https://www.a.test/", "https://x.www.a.test/", False),
        ("", "https://www.a.test/", "https://www.a.test:8443/", False),
        ("", "https://www.a.test/", "http://www.a.test/", False),
        ("", "http://www.a.test/", "https://www.a.test/", False),
        ("Domain=a.test", "https://www.a.test/", "https://a.test/", True),
        ("Domain=.A.test", "https://www.a.test/", "https://other.a.test/", True),
        ("Domain=a.test", "https://www.a.test/", "https://www.a.test:8443/", True),
        ("Domain=a.test", "https://www.a.test/", "http://www.a.test/", False),
        ("Domain=a.test", "https://www.a.test/", "https://ba.test/", False),
        ("Domain=www.a.test", "https://www.a.test/", "https://a.test/", False),
        ("Domain=x.www.a.test", "https://www.a.test/", "https://x.www.a.test/", False),
        ("Domain=other.a.test", "https://www.a.test/", "https://www.a.test/", False),
        ("Domain=b.test", "https://www.a.test/", "https://www.a.test/", False),
        ("Domain=", "https://www.a.test/", "https://www.a.test/", True),
        ("Domain=b.test; Domain=a.test", "https://www.a.test/", "https://a.test/", True),
        ("Domain=test", "https://a.test/", "https://a.test/", False),
        ("Domain=co.uk", "https://shop.co.uk/", "https://shop.co.uk/", False),
        ("Domain=co.uk", "https://co.uk/", "https://co.uk/", True),
        ("Domain=co.uk", "https://co.uk/", "https://shop.co.uk/", False),
        ("Domain=github.io", "https://me.github.io/", "https://you.github.io/", False),
        ("Domain=192.0.2.1", "https://192.0.2.1/", "https://192.0.2.1/", True),
        ("Domain=2.1", "https://192.0.2.1/", "https://192.0.2.1/", False),
        ("Domain=[::1]", "https://[::1]/", "https://[::1]/", True),
        ("Domain=localhost", "http://localhost/", "http://localhost/", True),
        ("Domain=localhost", "http://localhost/", "http://x.localhost/", False),
        ("Secure", "https://www.a.test/", "https://www.a.test/", True),
        ("Secure", "http://www.a.test/", "http://www.a.test/", False),
    ],
)
def test_a_cookie_goes_where_it_came_from_or_where_it_may_ask_for(
    attributes: str, source: str, to: str, goes: bool
) -> None:
    assert sent(f"a=1; {attributes}", to, source) == ("a=1" if goes else "")


@pytest.mark.parametrize(
    ("path", "target", "goes"),
    [
        ("", "/dir/other", True),
        ("", "/dir", True),
        ("", "/other", False),
        ("/", "/any", True),
        ("/dir", "/dir", True),
        ("/dir", "/dir?q", True),
        ("/dir", "/dir/x", True),
        ("/dir", "/directory", False),
        ("/dir/", "/dir", False),
        ("dir", "/dir/x", True),
        ("/x; Path=/y", "/y", True),
        ("/x" + "y" * 2000, "/dir/x", True),
    ],
)
def test_a_path_bounds_a_cookie(path: str, target: str, goes: bool) -> None:
    line = f"a=1; Path={path}" if path else "a=1"
    source = "https://www.a.test/dir/page" if path or target != "/dir" else "https://www.a.test/dir"
    if not path and target == "/dir":
        assert sent(line, "https://www.a.test/dir", source) == "a=1"
    else:
        assert sent(line, f"https://www.a.test{target}", source) == ("a=1" if goes else "")


@pytest.mark.parametrize(
    ("attributes", "lives"),
    [
        ("", 1 << 50),
        ("Max-Age=10", 10_000),
        ("Max-Age=0", 0),
        ("Max-Age=-5", 0),
        ("Max-Age=99999999999999999999", LONGEST_MS),
        ("Max-Age=soon", 1 << 50),
        ("Max-Age=", 1 << 50),
        ("Expires=Tue, 14 Nov 2023 22:13:30 GMT", 10_000),
        ("Expires=Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Expires=Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_MS),
        ("Expires=never", 1 << 50),
        ("Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=10", 10_000),
    ],
)
def test_a_cookie_lives_as_long_as_it_says_and_no_longer_than_we_allow(attributes: str, lives: int) -> None:
    line = f"a=1; {attributes}"
    assert sent(line, later=lives - 1) == ("a=1" if lives else "")
    assert sent(line, later=lives) == ("" if lives < 1 << 50 else "a=1")


def test_a_cookie_that_is_set_again_replaces_the_first_and_one_that_is_over_forgets_it() -> None:
    assert sent(["a=1", "b=2", "a=3"]) == "a=3; b=2"
    assert sent(["a=1", "b=2", "a=; Max-Age=0"]) == "b=2"
    assert sent(["a=1", "a=; Max-Age=0"]) == ""


@pytest.mark.parametrize("other", ["http://www.a.test/", "https://www.a.test:8443/", "https://x.www.a.test/"])
def test_no_other_origin_can_replace_or_end_a_cookie(other: str) -> None:
    jar = Jar()
    home = destination_of("https://www.a.test/")
    jar.keep(["a=1"], home, NOW)
    jar.keep(["a=2", "a=; Max-Age=0; Domain=a.test", "a=; Max-Age=0"], destination_of(other), NOW)
    assert jar.field(home, NOW) == "a=1"


def test_longer_paths_come_first_and_then_older_cookies() -> None:
    assert sent(["a=1; Path=/", "b=2; Path=/dir", "c=3; Path=/"]) == "b=2; a=1; c=3"


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("__Secure-a=1; Secure", True),
        ("__Secure-a=1", False),
        ("__Host-a=1; Secure; Path=/", True),
        ("__Host-a=1; Secure", False),
        ("__Host-a=1; Secure; Path=/; Domain=a.test", False),
        ("__Host-a=1; Path=/", False),
    ],
)
def test_a_name_that_promises_how_it_was_set_must_keep_it(line: str, kept: bool) -> None:
    assert bool(sent(line)) is kept


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Wed, 09 Jun 2021 10:18:14 GMT", datetime(2021, 6, 9, 10, 18, 14, tzinfo=UTC)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)),
        ("Sun Nov  6 08:49:37 1994", datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)),
        ("06/nov/69 8:9:7", datetime(2069, 11, 6, 8, 9, 7, tzinfo=UTC)),
        ("06 nov 70 8:9:7", datetime(1970, 11, 6, 8, 9, 7, tzinfo=UTC)),
        ("november 6 8:9:7 1994", datetime(1994, 11, 6, 8, 9, 7, tzinfo=UTC)),
        ("31 Feb 2021 00:00:00", None),
        ("06 Nov 1600 00:00:00", None),
        ("06 Nov 2021 24:00:00", None),
        ("06 Nov 2021", None),
        ("", None),
        ("06 Nov 20211 00:00:00", None),
    ],
)
def test_dates_are_read_leniently(text: str, moment: datetime | None) -> None:
    assert read_date(text) == (None if moment is None else int(moment.timestamp()) * 1000)


def test_a_site_keeps_no_more_than_its_share_and_the_oldest_leaves() -> None:
    jar = Jar()
    source = destination_of(PAGE)
    for number in range(MAX_PER_SITE + 5):
        jar.keep([f"c{number}=1"], source, NOW)
    names = [pair.partition("=")[0] for pair in jar.field(source, NOW).split("; ")]
    assert names == [f"c{number}" for number in range(5, MAX_PER_SITE + 5)]


def test_of_one_answer_only_so_many_lines_are_read() -> None:
    jar = Jar()
    jar.keep([f"a={number}" for number in range(MAX_LINES + 1)], destination_of(PAGE), NOW)
    assert jar.field(destination_of(PAGE), NOW) == f"a={MAX_LINES - 1}"


def test_a_field_is_never_too_long_for_a_server() -> None:
    field = sent([f"c{number}=" + "x" * 3000 for number in range(9)])
    assert len(field) <= MAX_SENT
    assert field.count("c") == 2


def test_all_sites_together_stay_within_bounds_and_the_one_longest_unused_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cookies, "MAX_KEPT", 4000)
    jar = Jar()
    first, *others = (destination_of(f"https://s{number}.test/") for number in range(4))
    jar.keep(["a=" + "x" * 900], first, NOW)
    for other in others:
        jar.keep(["a=" + "x" * 900], other, NOW)
        assert jar.field(first, NOW)
    assert not jar.field(others[0], NOW)
    assert jar.field(others[-1], NOW)


@given(st.text(st.characters(max_codepoint=255), max_size=200))
def test_whatever_a_server_sends_a_line_stays_a_line(line: str) -> None:
    cookie = read_cookie(line, destination_of(PAGE), NOW)
    assert cookie is None or not set("\r\n\0") & set(cookie.name + cookie.value)
    read_date(line)
