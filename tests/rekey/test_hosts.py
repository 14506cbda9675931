"""What becomes of hosts that lose their name or their last URL, and of what was merged before."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.rekey import apply
from crawlspace.app.rules import RULES, RULES_TEXT
from crawlspace.errors import StoreDamaged
from crawlspace.frontier.sqlite.store import SqliteFrontier
from crawlspace.settings import Settings, convert, nested
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.frontier_contract_audit import audit_file
from crawlspace.types import Address, Claim, Died, Evidence, Pace, Reason, Released, Settlement, Wish
from crawlspace.urls import Identity, policy_from

T0 = 1_700_000_000_000
HASH_KEY = "5a" * 32
Built = Callable[..., CrawlDirectory]


def settings_with(**identity: Any) -> Settings:
    values = {"store.refusals_kept": 1, "scope.strategy": "any"}
    return convert(nested(values | {f"identity.{name}": value for name, value in identity.items()}), "test")


def store_of(
    path: Path, settings: Settings, urls: dict[str, Reason | None], *, fetched: bool = False
) -> CrawlDirectory:
    """A crawl that knows these URLs, refused for a reason or queued, and has failed for those if `fetched`."""
    place = CrawlDirectory(path)
    place.create()
    policy = policy_from(settings.identity)
    identity = Identity(policy, bytes.fromhex(HASH_KEY))

    async def run() -> None:
        frontier = await SqliteFrontier.open(place.database, settings.frontier(), ManualClock(T0))
        try:
            await frontier.note({"hash_key": HASH_KEY, RULES: policy.identifier, RULES_TEXT: policy.text})
            addresses = [(identity.identify(url), reason) for url, reason in urls.items()]
            await frontier.claim(
                [Claim(who, refusal=why, depth=1) for who, why in addresses if isinstance(who, Address)]
            )
            for lease in await frontier.lease(Wish(1, 9, 9, 60_000, 10**6)) if fetched else []:
                ends: list[Settlement] = [
                    Died(lease.token, lease.host.hid, url, Evidence(T0, error="dns")) for url in lease.urls
                ]
                await frontier.settle([*ends, Released(lease.token, lease.host.hid, Pace(T0))], [])
        finally:
            await frontier.close()

    asyncio.run(run())
    return place


def rekey(place: CrawlDirectory, **identity: Any) -> None:
    asyncio.run(apply(place, settings_with(**identity), ManualClock(T0), lambda _: None))
    audit_file(place.database)


def ask(place: CrawlDirectory, question: str) -> list[tuple[Any, ...]]:
    database = sqlite3.connect(place.database, isolation_level=None)
    try:
        return database.execute(question).fetchall()
    finally:
        database.close()


def test_a_host_all_of_whose_urls_have_another_name_now_goes(tmp_path: Path) -> None:
    place = store_of(tmp_path / "c", settings_with(fold_www=True), {"http://www.a.test/": None})
    assert ask(place, "SELECT name FROM host") == [("a.test",)]
    rekey(place)
    assert ask(place, "SELECT name, n_queued, discovered, met FROM host") == [("www.a.test", 1, 1, 1)]


def test_tries_go_along_with_a_url_that_leaves_its_hosts_name(tmp_path: Path) -> None:
    urls = {"http://www.a.test/": None, "http://a.test/b": None, "http://www.a.test/c": None}
    place = store_of(tmp_path / "c", settings_with(fold_www=True), urls, fetched=True)
    assert ask(place, "SELECT name, fetched, dead FROM host") == [("a.test", 3, 3)]
    rekey(place)
    assert ask(place, "SELECT name, fetched, dead FROM host ORDER BY name") == [
        ("a.test", 1, 1),
        ("www.a.test", 2, 2),
    ]


def test_refusals_that_were_only_counted_stay_with_the_name_of_their_host(tmp_path: Path) -> None:
    urls = dict.fromkeys((f"http://www.a.test/{n}" for n in range(5)), Reason.EXCLUDED)
    place = store_of(tmp_path / "c", settings_with(fold_www=True), urls)
    rekey(place)
    kept = "SELECT name, reason, kept, beyond FROM refusal JOIN host USING (hid) ORDER BY name"
    assert ask(place, kept) == [("a.test", "excluded", 0, 4), ("www.a.test", "excluded", 1, 0)]
    rekey(place, fold_www=True)
    assert ask(place, kept) == [("a.test", "excluded", 1, 4)]


def test_a_host_that_was_met_hands_that_on(tmp_path: Path) -> None:
    """Also when all that is left of it was refused."""
    place = store_of(tmp_path / "c", settings_with(), {"http://www.a.test/": Reason.EXCLUDED})
    ask(place, "UPDATE host SET met = 1, discovered = 1")
    ask(place, "UPDATE tally SET n = 1 WHERE name = 'hosts'")
    rekey(place, fold_www=True)
    assert ask(place, "SELECT name, met, discovered FROM host") == [("a.test", 1, 1)]


@pytest.mark.parametrize(
    ("url", "name"), [("https://www.a.test:80/", "a.test:80"), ("http://[::1]:8080/", "[::1]:8080")]
)
def test_hosts_with_ports_go_by_name_and_port(tmp_path: Path, url: str, name: str) -> None:
    place = store_of(tmp_path / "c", settings_with(), {url: None})
    rekey(place, fold_www=True)
    assert ask(place, "SELECT name, n_queued FROM host") == [(name, 1)]


def test_a_host_whose_name_is_none_is_damage(tmp_path: Path) -> None:
    place = store_of(tmp_path / "c", settings_with(), {"http://www.a.test/": Reason.EXCLUDED})
    ask(place, "UPDATE host SET name = 'a b'")
    with pytest.raises(StoreDamaged, match="a host that is none"):
        rekey(place, fold_www=True)


def test_rules_reached_in_two_steps_merge_as_in_one(tmp_path: Path, built: Built) -> None:
    """What was merged in the first step follows in the second, and comes back in the last."""
    once, twice = built(tmp_path / "once"), built(tmp_path / "twice")
    rules = {"store.refusals_kept": 7, "budget.pages_per_host": 60, "scope.strategy": "any"}

    def go(place: CrawlDirectory, **identity: Any) -> None:
        values = rules | {f"identity.{name}": value for name, value in identity.items()}
        asyncio.run(apply(place, convert(nested(values), "test"), ManualClock(T0), lambda _: None))
        audit_file(place.database)

    go(once, policy="aggressive")
    go(twice, fold_www=True, merge_slashes=True)
    assert ask(twice, "SELECT count(*) > 0 FROM merged") == [(1,)]
    go(twice, policy="aggressive")
    keys = "SELECT fp FROM seen ORDER BY fp"
    assert ask(once, keys) == ask(twice, keys)
    states = "SELECT name, n FROM tally WHERE name NOT IN ('duplicates', 'pages') ORDER BY name"
    assert ask(once, states) == ask(twice, states)
    assert ask(twice, "SELECT count(*) FROM merged m WHERE m.winner IN (SELECT id FROM merged)") == [(0,)]
    for place in (once, twice):
        go(place)
    assert ask(once, keys) == ask(twice, keys)


def test_the_hosts_of_domains_and_addresses_are_counted_under_their_new_names(tmp_path: Path) -> None:
    urls = dict.fromkeys(["http://a.test/", "http://www.a.test/", "http://b.a.test/", "http://www.c.test/"])
    place = store_of(tmp_path / "c", settings_with(), {**urls, "http://d.test/": Reason.DOMAIN_HOSTS})
    counts = "SELECT name, hosts, refused FROM crowd ORDER BY name"
    before = ask(place, counts)
    ask(place, "UPDATE host SET address = '192.0.2.7' WHERE name LIKE '%a.test'")
    ask(place, "UPDATE host SET parked = 'address_hosts', ready = 0 WHERE name = 'b.a.test'")
    rekey(place, fold_www=True)
    [address, *after] = ask(place, counts)
    assert before == [("domain a.test", 3, 0), ("domain c.test", 1, 0)]
    assert after == [("domain a.test", 2, 0), ("domain c.test", 1, 0), ("domain d.test", 0, 1)], (
        "www.a.test is a.test"
    )
    assert address == ("address 192.0.2.7", 1, 0), "one of the two that have it rests for having it"
