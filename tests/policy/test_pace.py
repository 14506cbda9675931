"""One host's clock."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from crawlspace.errors import ConfigError
from crawlspace.policy import pace as clock
from crawlspace.policy.outcome import Kind, Outcome, Told
from crawlspace.policy.pace import Breaker, HostRule, HostSettings, Treatment
from crawlspace.types import Pace

T = 1_700_000_000_000
SETTINGS = HostSettings(adaptive=False)

GOOD = Outcome(Kind.SUCCESS)
MOVED = Outcome(Kind.REDIRECT, location="/x")
GONE = Outcome(Kind.TERMINAL, error="http_404")
BROKEN = Outcome(Kind.TRANSIENT, error="http_500")
SILENT = Outcome(Kind.TRANSIENT, error="connect", told=Told.ABSENT)
OURS = Outcome(Kind.TRANSIENT, error="local", told=Told.NOTHING)


def busy(retry_after_ms: int | None = None) -> Outcome:
    return Outcome(Kind.TRANSIENT, error="http_503", slow_down=True, retry_after_ms=retry_after_ms)


def run(*outcomes: Outcome, pace: Pace | None = None, settings: HostSettings = SETTINGS) -> Pace:
    """The clock after requests that each start at T and take 100 ms."""
    pace = pace or clock.first(settings)
    for outcome in outcomes:
        pace = clock.after(pace, outcome, T, T + 100, settings)
    return pace


def test_a_new_host_is_due_at_once_at_the_set_delay() -> None:
    """Nothing has been asked, so nothing is to be waited for."""
    assert clock.first(HostSettings(delay=2.5)) == Pace(next_at=0, delay_ms=2500)


@pytest.mark.parametrize("outcome", [GOOD, MOVED, GONE, BROKEN, OURS], ids=lambda outcome: outcome.kind)
def test_the_delay_runs_from_start_to_start(outcome: Outcome) -> None:
    """How long an answer takes does not lengthen it."""
    assert clock.after(clock.first(SETTINGS), outcome, T, T + 700, SETTINGS) == Pace(next_at=T + 1000, delay_ms=1000)


def test_being_asked_to_slow_down_doubles_the_delay_up_to_the_longest() -> None:
    """Without a time of its own, the host is asked half as often each time."""
    delays = [run(*[busy()] * times).delay_ms for times in range(1, 11)]
    assert delays == [2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000]


def test_good_answers_take_back_half_of_what_was_added() -> None:
    """Recovery is gentle and complete."""
    pace = run(busy(), busy(), busy())
    delays = []
    for _ in range(14):
        pace = run(GOOD, pace=pace)
        delays.append(pace.delay_ms)
    assert delays[:4] == [4500, 2750, 1875, 1437]
    assert (delays[-1], pace.slowed) == (1000, 0)


@pytest.mark.parametrize("outcome", [MOVED, GONE], ids=["redirect", "not found"])
def test_any_sound_answer_is_a_sign_of_recovery(outcome: Outcome) -> None:
    """A host that says 404 is well."""
    assert run(busy(), outcome).delay_ms == 1500


def test_a_host_in_trouble_neither_slows_nor_recovers() -> None:
    """A 500 is an answer, but no sign of health."""
    assert run(busy(), SILENT, BROKEN) == Pace(next_at=T + 100 + 10_000, delay_ms=2000, failures=0, slowed=1)


def test_retry_after_is_obeyed_from_the_answer_on() -> None:
    """Told how long, we wait that long and change nothing else."""
    assert run(busy(60_000)) == Pace(next_at=T + 100 + 60_000, delay_ms=1000, slowed=1)


def test_retry_after_never_shortens_the_delay() -> None:
    """The delay is a floor."""
    assert run(busy(10)).next_at == T + 1000
    assert run(busy(0)).next_at == T + 1000


def test_retry_after_that_was_too_short_doubles_the_delay_too() -> None:
    """A host that asks again straight after needs more than it said."""
    assert [run(*[busy(10)] * times).delay_ms for times in (1, 2, 3)] == [1000, 2000, 4000]


def test_retry_after_is_cut_to_the_setting() -> None:
    """A server that names a year is not obeyed for a year."""
    settings = HostSettings(retry_after_max=600)
    assert run(busy(31_536_000_000), settings=settings).next_at == T + 100 + 600_000


def test_retry_after_holds_for_good_answers_too() -> None:
    """`200` with Retry-After is a wish like any other."""
    answer = Outcome(Kind.SUCCESS, slow_down=True, retry_after_ms=30_000)
    assert run(answer).next_at == T + 30_100


def test_a_host_without_delay_can_still_be_slowed() -> None:
    """Twice nothing would be nothing."""
    assert run(busy(), settings=HostSettings(delay=0)).delay_ms == 1000
    assert run(busy(), settings=HostSettings(delay=0.05, delay_max=0.5)).delay_ms == 500


def test_a_silent_host_is_probed_after_waits_that_double() -> None:
    """From the end of the failed request on, up to the longest delay; the delay itself stays."""
    waits = [run(*[SILENT] * times).next_at - T - 100 for times in range(1, 9)]
    assert waits == [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000, 300_000]
    assert run(*[SILENT] * 8).delay_ms == 1000


def test_an_answer_forgets_the_silence() -> None:
    """Failures count in a row; even an error page ends the row."""
    assert run(SILENT, SILENT, SILENT).failures == 3
    assert [run(SILENT, SILENT, outcome).failures for outcome in (GOOD, MOVED, GONE, BROKEN, busy())] == [0] * 5


def test_our_own_failures_change_nothing_but_the_next_start() -> None:
    """They are no word about the host, good or bad."""
    before = run(busy(), SILENT)
    after = clock.after(before, OURS, T + 50_000, T + 50_001, SETTINGS)
    assert after == Pace(next_at=T + 52_000, delay_ms=2000, failures=1, slowed=1)


@pytest.mark.parametrize(
    ("failures", "verdict"), [(0, None), (4, None), (5, "host_unreachable"), (9, "host_unreachable")]
)
def test_a_host_is_given_up_after_so_many_probes_without_an_answer(failures: int, verdict: str | None) -> None:
    """Five by default."""
    assert clock.condemned(Pace(failures=failures), SETTINGS) == verdict


def test_crawl_delay_lengthens_the_delay_from_the_last_start_on() -> None:
    """The request for robots.txt itself was the last start."""
    pace = clock.with_crawl_delay(Pace(next_at=T + 1000, delay_ms=1000), 5, cap=30)
    assert pace == Pace(next_at=T + 5000, delay_ms=5000, crawl_delay_ms=5000)
    assert clock.with_crawl_delay(pace, 5, cap=30) == pace


def test_crawl_delay_is_capped() -> None:
    """A site that asks for a day gets the cap."""
    assert clock.with_crawl_delay(Pace(), 86_400, cap=30).crawl_delay_ms == 30_000
    assert clock.with_crawl_delay(Pace(), float("inf"), cap=30).crawl_delay_ms == 30_000


@pytest.mark.parametrize("seconds", [None, -1, float("nan"), float("-inf")])
def test_a_crawl_delay_that_is_none_or_makes_no_sense_is_none(seconds: float | None) -> None:
    """The host's own pace stays."""
    pace = Pace(next_at=T, delay_ms=1000, crawl_delay_ms=5000)
    assert clock.with_crawl_delay(pace, seconds, cap=30) == Pace(next_at=T, delay_ms=1000)


def test_a_crawl_delay_below_ours_does_not_hurry_us() -> None:
    """The larger of the two is the base."""
    assert clock.with_crawl_delay(Pace(), 0.2, cap=30) == Pace(delay_ms=1000, crawl_delay_ms=200)


def test_recovery_stops_at_the_crawl_delay_and_a_dropped_one_fades() -> None:
    """The base is what robots.txt asks for, as long as it asks."""
    slow = clock.with_crawl_delay(Pace(), 8, cap=30)
    assert run(busy(), *[GOOD] * 20, pace=slow).delay_ms == 8000
    free = clock.with_crawl_delay(slow, None, cap=30)
    assert run(GOOD, pace=free).delay_ms == 4500
    assert run(*[GOOD] * 20, pace=free).delay_ms == 1000


def test_a_crawl_delay_beyond_the_longest_delay_still_holds() -> None:
    """`delay_max` bounds what trouble adds, not what the base is."""
    slow = clock.with_crawl_delay(Pace(), 20, cap=30)
    assert run(busy(), pace=slow, settings=HostSettings(delay_max=5)).delay_ms == 20_000


def test_settings_that_changed_hold_from_the_next_request_on() -> None:
    """A stored clock of an earlier run is raised at once and lowered gently."""
    assert run(GOOD, pace=Pace(delay_ms=1000), settings=HostSettings(delay=5)).delay_ms == 5000
    assert run(GOOD, pace=Pace(delay_ms=9000), settings=HostSettings(delay=1)).delay_ms == 5000


def test_a_longer_wait_told_to_another_request_stands() -> None:
    """With several requests open, the last answer does not undo an earlier Retry-After."""
    told = run(busy(60_000))
    assert clock.after(told, GOOD, T + 50, T + 900, SETTINGS).next_at == T + 60_100


def test_a_clock_that_jumped_back_does_not_put_a_host_off_for_ever() -> None:
    """A next time from a future that never was is cut to the longest wait we grant."""
    future = Pace(next_at=T + 10 * 365 * 86_400_000)
    assert run(GOOD, pace=future).next_at == T + 100 + 86_400_000


outcomes = st.builds(
    Outcome,
    kind=st.sampled_from(Kind),
    error=st.none(),
    retry_after_ms=st.none() | st.integers(0, 10**12),
    slow_down=st.booleans(),
    told=st.sampled_from(Told),
)
settings_of_any_kind = st.builds(
    HostSettings,
    delay=st.floats(0, 86_400),
    jitter=st.floats(0, 1),
    adaptive=st.booleans(),
    delay_max=st.floats(0, 86_400),
    retry_after_max=st.floats(0, 604_800),
    failure_wait=st.floats(0, 86_400),
    failures_max=st.integers(1, 1000),
)
requests = st.lists(st.tuples(outcomes, st.integers(0, 100_000), st.integers(-5_000, 600_000)), max_size=40)


@given(requests, settings_of_any_kind, st.none() | st.floats())
def test_the_next_request_is_never_early_and_never_put_off_without_bound(
    history: list[tuple[Outcome, int, int]], settings: HostSettings, crawl_delay: float | None
) -> None:
    """Whatever answers come in whatever order, even while the machine's clock steps back."""
    pace = clock.with_crawl_delay(clock.first(settings), crawl_delay, cap=60)
    base = max(round(settings.delay * 1000), pace.crawl_delay_ms or 0)
    slowest = max(base, round(settings.delay_max * 1000))
    chance = random.Random(len(history))
    now = T
    for outcome, pause, took in history:
        started = now + pause
        now = started + took
        pace = clock.after(pace, outcome, started, now, settings)
        assert base <= pace.delay_ms <= slowest
        assert pace.next_at >= started + pace.delay_ms
        assert pace.next_at <= max(started, now) + max(slowest, round(settings.retry_after_max * 1000))
        granted = min(outcome.retry_after_ms or 0, round(settings.retry_after_max * 1000))
        assert not granted or pace.next_at >= now + granted
        shaken = clock.with_jitter(pace, chance, settings)
        assert pace.next_at <= shaken.next_at <= pace.next_at + settings.jitter * pace.delay_ms
        assert shaken == replace(pace, next_at=shaken.next_at)


@given(requests, settings_of_any_kind)
def test_a_clock_can_be_stored_and_is_the_same_again(
    history: list[tuple[Outcome, int, int]], settings: HostSettings
) -> None:
    """Whole numbers only, none beyond 64 bits."""
    pace = clock.first(settings)
    for outcome, pause, took in history:
        pace = clock.after(pace, outcome, T + pause, T + pause + took, settings)
    assert msgspec.convert(msgspec.to_builtins(pace), Pace) == pace
    assert all(value is None or 0 <= value < 2**63 for value in msgspec.to_builtins(pace).values())


@pytest.mark.parametrize(
    "wrong",
    [
        {"delay": -1},
        {"delay": float("nan")},
        {"concurrency": 0},
        {"failures_max": 0},
        {"retry_after_max": -1},
        {"dely": 1},
    ],
)
def test_settings_out_of_range_or_unknown_are_refused(wrong: dict[str, float]) -> None:
    """Each at its place."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, HostSettings)


# -- the host's own speed -----------------------------------------------------------------------------------


def answers(*took: int, pace: Pace | None = None, settings: HostSettings | None = None) -> list[int]:
    """The delay after each of these answers, by the milliseconds that they took."""
    settings = settings or HostSettings()
    pace = pace or clock.first(settings)
    delays = []
    for ms in took:
        pace = clock.after(pace, GOOD, T, T + ms, settings)
        delays.append(pace.delay_ms)
    return delays


def test_a_host_that_slows_is_asked_less_often_and_recovers_gently() -> None:
    """From start to start passes twice the time that its answers take."""
    assert answers(100, 200, 300) == [1000, 1000, 1000]
    assert answers(3000) == [6000]
    delays = answers(200, 3000, 3000, 3000, *[200] * 30)
    assert delays[1:4] == [3200, 4600, 5300]
    assert delays[4:] == sorted(delays[4:], reverse=True), "no answer makes it fall at once"
    assert delays[4] > 3500
    assert delays[-1] == 1000


def test_no_speed_of_a_host_leads_beyond_the_longest_delay() -> None:
    assert answers(400_000) == [300_000]


@pytest.mark.parametrize("settings", [HostSettings(delay=0), HostSettings(adaptive=False)])
def test_a_delay_of_nothing_stays_nothing_and_the_setting_is_obeyed(settings: HostSettings) -> None:
    """Zero means zero: such a host is our own."""
    assert answers(5000, 5000, settings=settings) == [round(settings.delay * 1000)] * 2


@pytest.mark.parametrize("outcome", [SILENT, OURS], ids=["silent", "ours"])
def test_what_is_no_answer_says_nothing_of_a_hosts_speed(outcome: Outcome) -> None:
    pace = clock.after(Pace(latency_ms=400), outcome, T, T + 60_000, HostSettings())
    assert pace.latency_ms == 400


def test_a_clock_that_steps_back_during_an_answer_does_no_harm() -> None:
    assert clock.after(Pace(latency_ms=400), GOOD, T, T - 9000, HostSettings()).latency_ms == 300


# -- the circuit breaker ------------------------------------------------------------------------------------


def test_a_host_that_does_not_answer_is_left_alone_then_probed_then_asked_again() -> None:
    silent = run(SILENT)
    assert clock.breaker(clock.first(SETTINGS), T) is Breaker.CLOSED
    assert clock.breaker(silent, silent.next_at - 1) is Breaker.OPEN
    assert clock.breaker(silent, silent.next_at) is Breaker.HALF_OPEN
    again = run(SILENT, pace=silent)
    assert clock.breaker(again, silent.next_at) is Breaker.OPEN, "a probe that failed opens it for longer"
    assert clock.breaker(run(BROKEN, pace=silent), T) is Breaker.CLOSED, "any answer closes it"


# -- settings by host ---------------------------------------------------------------------------------------

RULES = HostSettings(
    delay=1,
    concurrency=2,
    rules=(
        HostRule(host=r"^quick\.test$", delay=0),
        HostRule(host="glob:*.slow.test", delay=10, concurrency=1),
        HostRule(host="slow", concurrency=7),
    ),
)


@pytest.mark.parametrize(
    ("host", "delay", "concurrency"),
    [
        ("a.test", 1, 2),
        ("quick.test", 0, 2),
        ("not-quick.test.org", 1, 2),
        ("www.slow.test", 10, 1),
        ("www.slow.test.org", 1, 7),
    ],
)
def test_the_first_rule_that_fits_a_hosts_name_counts(host: str, delay: float, concurrency: int) -> None:
    treatment = Treatment.of(RULES)
    for _ in range(2):
        assert (treatment.host(host).delay, treatment.host(host).concurrency) == (delay, concurrency)


def test_a_rule_may_set_how_far_chance_lengthens_the_delay() -> None:
    treatment = Treatment.of(HostSettings(jitter=0.2, rules=(HostRule(host="a", jitter=0), HostRule(host="b"))))
    assert [treatment.host(name).jitter for name in ("a.test", "b.test", "c.x")] == [0, 0.2, 0.2]


def test_without_rules_all_hosts_are_treated_alike() -> None:
    assert Treatment.of(SETTINGS).host("a.test") is SETTINGS


def test_only_so_many_hosts_are_remembered() -> None:
    treatment = Treatment.of(RULES)
    for number in range(10_000):
        treatment.host(f"{number}.slow.test")
    assert len(treatment._known) <= 4096
    assert treatment.host("1.slow.test").delay == 10


def test_a_rule_whose_pattern_cannot_be_read_is_named() -> None:
    with pytest.raises(ConfigError, match=r"host\.rules, rule 2"):
        Treatment.of(HostSettings(rules=(HostRule(host="a"), HostRule(host="("))))


@pytest.mark.parametrize(
    ("pace", "begun"),
    [
        (Pace(delay_ms=1000), Pace(delay_ms=5000)),
        (Pace(delay_ms=9000), Pace(delay_ms=5000)),
        (Pace(delay_ms=9000, crawl_delay_ms=7000), Pace(delay_ms=7000, crawl_delay_ms=7000)),
        (Pace(next_at=T, delay_ms=1000), Pace(next_at=T + 4000, delay_ms=5000)),
        (Pace(next_at=T, delay_ms=9000), Pace(next_at=T, delay_ms=9000)),
    ],
    ids=["new", "new and quicker", "new with a crawl delay", "slower than before", "quicker than before"],
)
def test_a_visit_begins_under_the_settings_of_now(pace: Pace, begun: Pace) -> None:
    """A longer delay holds from the last start on; a shorter one is reached answer by answer."""
    assert clock.begin(pace, HostSettings(delay=5)) == begun
