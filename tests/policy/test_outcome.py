"""What an answer means."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.exchange import FetchError, FetchResult, Headers, Truncated
from crawlspace.policy.outcome import DAY_MS, FAILURES, Kind, Outcome, Told, classify, dead_end, wait_asked

DATA = Path(__file__).resolve().parents[1] / "data" / "policy"
NOW = 1_559_559_600_000
"""Mon, 03 Jun 2019 11:00:00 GMT."""


def result(
    status: int = 200,
    *,
    error: FetchError | None = None,
    truncated: Truncated | None = None,
    payload: bytes = b"page",
    **headers: str,
) -> FetchResult:
    raw = tuple((name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items())
    return FetchResult(
        "http://site.test/",
        NOW,
        error=error,
        status=status,
        headers=Headers(raw),
        payload=payload,
        truncated=truncated,
    )


def rows(name: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads((DATA / name).read_text(encoding="utf-8"))
    assert found
    return found


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (200, Kind.SUCCESS, None),
        (204, Kind.SUCCESS, None),
        (206, Kind.SUCCESS, None),
        (304, Kind.SUCCESS, None),
        (101, Kind.TERMINAL, "http_101"),
        (300, Kind.TERMINAL, "http_300"),
        (301, Kind.TERMINAL, "http_301"),
        (400, Kind.TERMINAL, "http_400"),
        (401, Kind.TERMINAL, "http_401"),
        (403, Kind.TERMINAL, "http_403"),
        (404, Kind.TERMINAL, "http_404"),
        (410, Kind.TERMINAL, "http_410"),
        (418, Kind.TERMINAL, "http_418"),
        (451, Kind.TERMINAL, "http_451"),
        (408, Kind.TRANSIENT, "http_408"),
        (425, Kind.TRANSIENT, "http_425"),
        (429, Kind.TRANSIENT, "http_429"),
        (500, Kind.TRANSIENT, "http_500"),
        (501, Kind.TERMINAL, "http_501"),
        (502, Kind.TRANSIENT, "http_502"),
        (503, Kind.TRANSIENT, "http_503"),
        (504, Kind.TRANSIENT, "http_504"),
        (505, Kind.TERMINAL, "http_505"),
        (522, Kind.TRANSIENT, "http_522"),
        (600, Kind.TERMINAL, "http_600"),
        (999, Kind.TERMINAL, "http_999"),
    ],
)
def test_a_status_without_location_has_one_kind_and_failures_carry_its_class(
    status: int, kind: Kind, error: str | None
) -> None:
    """200 to 299 and 304 succeed, timing refusals and most 5xx pass, all else is for good."""
    outcome = classify(result(status), NOW)
    assert (outcome.kind, outcome.error) == (kind, error)
    assert outcome.told is Told.PRESENT


@pytest.mark.parametrize(
    ("status", "permanent"), [(300, False), (301, True), (302, False), (303, False), (307, False), (308, True)]
)
def test_a_redirect_gives_its_location_as_it_stands(status: int, permanent: bool) -> None:
    """Nothing is resolved here; 301 and 308 hold for good."""
    outcome = classify(result(status, location=" ../x y?q#f "), NOW)
    assert outcome == Outcome(Kind.REDIRECT, location="../x y?q#f", permanent=permanent)


@pytest.mark.parametrize(("status", "kind"), [(305, Kind.TERMINAL), (306, Kind.TERMINAL), (304, Kind.SUCCESS)])
def test_a_location_of_these_statuses_is_no_redirect(status: int, kind: Kind) -> None:
    """305 would name a proxy, 306 is unused, 304 says that nothing changed."""
    outcome = classify(result(status, location="http://other.test/"), NOW)
    assert (outcome.kind, outcome.location) == (kind, None)


@pytest.mark.parametrize("location", ["", "   "])
def test_an_empty_location_is_none(location: str) -> None:
    """A redirect to nowhere is a failure for good."""
    assert classify(result(302, location=location), NOW) == Outcome(Kind.TERMINAL, error="http_302")


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (FetchError.DNS, Kind.TRANSIENT, Told.ABSENT),
        (FetchError.ADDRESS_REFUSED, Kind.TERMINAL, Told.NOTHING),
        (FetchError.CONNECT, Kind.TRANSIENT, Told.ABSENT),
        (FetchError.CONNECT_TIMEOUT, Kind.TRANSIENT, Told.ABSENT),
        (FetchError.TLS, Kind.TRANSIENT, Told.ABSENT),
        (FetchError.RESET, Kind.TRANSIENT, Told.ABSENT),
        (FetchError.IDLE_TIMEOUT, Kind.TRANSIENT, Told.ABSENT),
        (FetchError.TOTAL_TIMEOUT, Kind.TRANSIENT, Told.ABSENT),
        (FetchError.TOO_SLOW, Kind.TRANSIENT, Told.PRESENT),
        (FetchError.PROTOCOL, Kind.TRANSIENT, Told.PRESENT),
        (FetchError.HEAD_TOO_LARGE, Kind.TERMINAL, Told.PRESENT),
        (FetchError.DECODING, Kind.TRANSIENT, Told.PRESENT),
        (FetchError.LOCAL, Kind.TRANSIENT, Told.NOTHING),
    ],
)
def test_a_failure_without_a_head_is_judged_by_its_row(error: FetchError, kind: Kind, told: Told) -> None:
    """Silence counts against the host; our own failures and refusals do not."""
    outcome = classify(result(0, error=error, payload=b""), NOW)
    assert outcome == Outcome(kind, error=error.value, told=told)
    assert outcome.no_answer is (told is Told.ABSENT)


def test_every_failure_has_a_row() -> None:
    """A new word in the vocabulary without a judgement fails here, not in a crawl."""
    assert set(FAILURES) == set(FetchError)


def test_a_result_without_status_and_error_is_a_broken_protocol() -> None:
    """A fetcher that says neither what it read nor what failed is treated as if it had read nonsense."""
    assert classify(result(0), NOW).error == "protocol"


def test_a_body_cut_by_our_own_cap_is_a_success() -> None:
    """The page is long, not broken."""
    assert classify(result(truncated=Truncated.LENGTH), NOW) == Outcome(Kind.SUCCESS)


@pytest.mark.parametrize(
    ("error", "truncated", "name"),
    [
        (FetchError.RESET, Truncated.DISCONNECT, "truncated"),
        (FetchError.TOTAL_TIMEOUT, Truncated.TIME, "truncated"),
        (None, Truncated.DISCONNECT, "truncated"),
        (None, Truncated.TIME, "truncated"),
        (FetchError.PROTOCOL, None, "protocol"),
        (FetchError.DECODING, None, "decoding"),
        (FetchError.DECODING, Truncated.LENGTH, "decoding"),
    ],
)
@pytest.mark.parametrize("payload", [b"", b"half"])
def test_a_page_that_broke_off_may_do_better_next_time(
    error: FetchError | None, truncated: Truncated | None, name: str, payload: bytes
) -> None:
    """The host did answer; what came is worth keeping if it is anything."""
    outcome = classify(result(error=error, truncated=truncated, payload=payload), NOW)
    assert outcome == Outcome(Kind.TRANSIENT, error=name, partial=bool(payload))


def test_a_page_that_broke_off_by_our_own_fault_tells_nothing_of_the_host() -> None:
    """No memory to read the rest is no answer about the server."""
    outcome = classify(result(error=FetchError.LOCAL), NOW)
    assert (outcome.error, outcome.told, outcome.partial) == ("local", Told.NOTHING, True)


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [(404, Kind.TERMINAL, "http_404"), (503, Kind.TRANSIENT, "http_503"), (301, Kind.REDIRECT, None)],
)
def test_a_head_that_was_read_decides_though_its_body_broke_off(status: int, kind: Kind, error: str | None) -> None:
    """The body of an error or a redirect adds nothing."""
    broken = result(status, error=FetchError.RESET, truncated=Truncated.DISCONNECT, location="/x")
    outcome = classify(broken, NOW)
    assert (outcome.kind, outcome.error, outcome.partial) == (kind, error, False)


@pytest.mark.parametrize(
    ("status", "retry_after", "slow_down", "wait"),
    [
        (429, "", True, None),
        (503, "", True, None),
        (503, "0", True, 0),
        (503, "7", True, 7_000),
        (503, "soon", True, None),
        (500, "", False, None),
        (500, "7", True, 7_000),
        (200, "7", True, 7_000),
        (200, "0", False, 0),
        (404, "7", True, 7_000),
        (301, "7", True, 7_000),
        (503, "604800", True, DAY_MS),
    ],
)
def test_who_asks_us_to_slow_down(status: int, retry_after: str, slow_down: bool, wait: int | None) -> None:
    """429 and 503 do so by themselves, any other answer by a Retry-After that is not zero; a day is the longest."""
    outcome = classify(result(status, retry_after=retry_after, location="/x"), NOW)
    assert (outcome.slow_down, outcome.retry_after_ms) == (slow_down, wait)


def test_a_broken_off_page_keeps_what_its_head_asked_for() -> None:
    """Retry-After stands in the head, which was whole."""
    outcome = classify(result(truncated=Truncated.TIME, retry_after="3"), NOW)
    assert (outcome.retry_after_ms, outcome.slow_down) == (3000, True)


def test_the_longest_wait_granted_is_an_argument() -> None:
    """What a server asks for beyond it is cut."""
    assert classify(result(503, retry_after="600"), NOW, 5_000).retry_after_ms == 5_000


@pytest.mark.parametrize("row", rows("retry-after.json"), ids=lambda row: repr(row["value"]))
def test_retry_after_agrees_with_recorded_cases(row: dict[str, object]) -> None:
    """Seconds and dates as another client reads them."""
    now = int(datetime.fromisoformat(str(row.get("now", "2019-06-03T11:00:00Z"))).timestamp()) * 1000
    seconds = row["seconds"]
    expected = int(str(seconds)) * 1000 if seconds is not None else None
    assert wait_asked(str(row["value"]), now) == expected


@pytest.mark.parametrize("row", rows("http-dates.json"), ids=lambda row: repr(row["input"]))
def test_dates_agree_with_recorded_cases(row: dict[str, object]) -> None:
    """All three forms; only the weekday is not held against a date."""
    if "note" in row:
        assert wait_asked(str(row["input"]), 0) == 784_198_117_000
    else:
        expected = row["epoch"]
        assert wait_asked(str(row["input"]), 0) == (None if expected is None else int(str(expected)) * 1000)


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "Mon, 03 Jun 2019 11:30:12 +99999999999",
        "Mon, 03 Jun 2019 11:30:12 -2400",
        "Mon, 03 Jun 99999999999999999999999 11:30:12 GMT",
        "Wed, 31 Dec 1969 23:59:59 GMT",
        "Mon, 03 Jun 2019 11:30:12 GMT" + " " * 60 + "x",
        "12, 13",
    ],
)
def test_what_is_neither_seconds_nor_a_date_is_no_wish(value: str) -> None:
    """It is ignored, whatever its fault."""
    assert wait_asked(value, NOW) is None


@pytest.mark.parametrize("value", ["9" * 10, "9" * 5000, "1" * 60_000])
def test_a_number_without_end_is_a_long_wait_and_no_error(value: str) -> None:
    """Digits beyond what an integer may have are never converted."""
    assert (wait_asked(value, NOW) or 0) > 10_000 * DAY_MS


@pytest.mark.parametrize("value", ["000", "0" * 5000, "0007"])
def test_leading_zeros_change_nothing(value: str) -> None:
    """`0007` is seven seconds."""
    assert wait_asked(value, NOW) == (7000 if value.endswith("7") else 0)


@given(st.text(max_size=80) | st.from_regex(r"[A-Za-z]{3}, [0-9]{1,3} [A-Z][a-z]{2} [0-9]{1,7} [0-9:+-]{1,9} .{0,6}"))
def test_any_text_gives_a_wait_or_none(value: str) -> None:
    """Header values are a stranger's."""
    wait = wait_asked(value, NOW)
    assert wait is None or wait >= 0


@given(st.integers(0, 999), st.sampled_from([None, *FetchError]), st.sampled_from([None, *Truncated]))
def test_every_result_has_an_outcome_and_every_failure_a_class(
    status: int, error: FetchError | None, truncated: Truncated | None
) -> None:
    """Successes and redirects have none."""
    outcome = classify(result(status, error=error, truncated=truncated, location="/x"), NOW)
    assert (outcome.error is None) == (outcome.kind in (Kind.SUCCESS, Kind.REDIRECT))
    assert (outcome.location is not None) == (outcome.kind is Kind.REDIRECT)
    assert not (outcome.no_answer and status)


def test_a_dead_end_fails_for_good_under_its_name() -> None:
    """Used where only the reader of an answer can tell, as with a redirect loop."""
    assert dead_end("redirect_loop") == Outcome(Kind.TERMINAL, error="redirect_loop")


@pytest.mark.parametrize(
    ("raw", "location"), [(b"/a", "/a"), ("/ж".encode(), "/ж"), (b"/\xe9", "/é"), (b"/\xc3\xa9", "/é")]
)
def test_a_location_is_read_as_utf_8_where_it_is_that(raw: bytes, location: str) -> None:
    result = FetchResult("http://a.test/", 0, status=302, headers=Headers(((b"Location", raw),)))
    assert classify(result, 0).location == location
