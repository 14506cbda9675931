"""A store that contradicts itself is told so, and what its rows prove is mended."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from crawlspace.errors import StoreDamaged
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.frontier.sqlite.audit import Audit, open_audit
from crawlspace.policy.groups import GroupBy, GroupSettings
from crawlspace.states import UrlState
from crawlspace.testing.frontier_contract_audit import audit_file
from crawlspace.testing.frontier_contract_files import play
from crawlspace.testing.frontier_contract_words import (
    T0,
    died,
    failed_processing,
    finished,
    link,
    links,
    redirected,
    released,
    retry,
    seen,
    states,
    wish,
)
from crawlspace.types import Reason

HOUR = 3_600_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store in which something of every kind is."""
    path = tmp_path / "frontier.db"

    async def fill(store: SqliteFrontier) -> None:
        await store.claim([*links(9), *links(3, "b.test"), *links(5, "c.test", refusal=Reason.DEPTH)], T0)
        for lease in await store.lease(wish(urls_per_host=7), T0):
            if lease.host.name == "b.test":
                continue
            a, b, c, d, e, f, _ = lease.urls
            same = [finished(lease, url, seen(body=b"same")) for url in (a, b)]
            ends = [failed_processing(lease, c), redirected(lease, d, "http://b.test/9"), died(lease, e)]
            await store.settle([*same, *ends, retry(lease, f, T0 + HOUR), released(lease, T0 + HOUR)], [], T0)

    play(path, fill, refusals_kept=3)
    return path


def damage(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def faults(path: Path, *, deep: bool = False) -> list[str]:
    with open_audit(path, FrontierSettings(), owned=False) as audit:
        return [fault.what for fault in audit.faults(deep=deep)]


def mended(path: Path) -> list[str]:
    """What is left after mending."""
    with open_audit(path, FrontierSettings(), owned=True) as audit:
        audit.mend(T0 + 1)
        return [fault.what for fault in audit.faults(deep=True)]


@pytest.mark.parametrize("deep", [False, True])
def test_a_sound_store_has_no_faults(path: Path, deep: bool) -> None:
    assert faults(path, deep=deep) == []


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE tally SET n = n + 1 WHERE name = 'done'", "the total of done is 3, and 2 were counted"),
        ("UPDATE tally SET n = 0 WHERE name = 'queued'", "the total of queued is 0, and 4 were counted"),
        ("UPDATE tally SET n = 77 WHERE name = 'duplicates'", "the total of duplicates is 77, and 1 were counted"),
        ("UPDATE host SET n_queued = 8 WHERE name = 'a.test'", "host a.test: queued is 8 and should be 3"),
        ("UPDATE host SET n_delayed = 0 WHERE name = 'a.test'", "host a.test: delayed is 0 and should be 1"),
        ("UPDATE host SET done = 9, dead = 9 WHERE name = 'a.test'", "done is 9 and should be 2, dead is 9 and"),
        ("UPDATE host SET class = 9 WHERE name = 'a.test'", "class is 9 and should be 5"),
        ("UPDATE refusal SET kept = 2", "host c.test: 2 refusals for depth are noted, and 3 were counted"),
        ("DELETE FROM refusal", "host c.test: 0 refusals for depth are noted, and 3 were counted"),
        ("UPDATE segment SET length = 1", "captures reach to byte 100 of 0001.warc.gz, and 1 is noted"),
        ("UPDATE serial SET last = 2 WHERE name = 'url'", "numbers are in use that were never given out"),
        ("UPDATE host SET ready = 0 WHERE name = 'a.test'", "ready is 0 and should be 1"),
        ("DELETE FROM lease", "1 leases that only one side knows of"),
        ("UPDATE lease SET token = 99", "2 leases that only one side knows of"),
    ],
)
def test_what_rows_prove_wrong_is_told_and_mended(path: Path, statement: str, told: str) -> None:
    damage(path, statement)
    for deep in (False, True):
        assert any(told in fault for fault in faults(path, deep=deep)), faults(path, deep=deep)
    assert mended(path) == []
    audit_file(path)


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("DELETE FROM seen WHERE id = 3", "URL 3 has a key that is not known"),
        ("DELETE FROM outcome WHERE id = 3", "keys are known, and"),
        ("UPDATE seen SET id = 99 WHERE id = 3", "URL 3 has a key that is not known"),
        (
            "INSERT INTO queue SELECT hid, class, id, tail, url, depth, hops, attempts, parent, relation, "
            "found_at, 0, label, meta, request, history, generation, NULL, route FROM outcome WHERE id = 1",
            "URL 1 is in two places",
        ),
        ("UPDATE outcome SET hid = 7 WHERE id = 1", "1 URLs belong to hosts that are not there"),
    ],
)
def test_what_cannot_be_known_is_told_and_left(path: Path, statement: str, told: str) -> None:
    damage(path, statement)
    assert any(told in fault for fault in faults(path)), faults(path)
    assert any(told in fault for fault in mended(path))


def test_many_faults_of_one_kind_are_told_as_a_number(tmp_path: Path) -> None:
    path = tmp_path / "frontier.db"

    async def fill(store: SqliteFrontier) -> None:
        await store.claim([link("x", f"h{number}.test") for number in range(50)], T0)

    play(path, fill)
    damage(path, "UPDATE host SET dead = 1")
    assert faults(path)[-1] == "and 30 more hosts whose counters are wrong"
    assert len(faults(path)) == 21
    assert mended(path) == []


def test_a_file_with_a_broken_page_is_told_and_nothing_is_mended(path: Path) -> None:
    damage(path, "PRAGMA journal_mode = DELETE")
    data = bytearray(path.read_bytes())
    with closing(sqlite3.connect(path)) as connection:
        ask = "SELECT rootpage FROM sqlite_schema WHERE name = 'outcome'"
        root = connection.execute(ask).fetchone()[0]
    data[(root - 1) * 4096 : (root - 1) * 4096 + 4] = b"\x0d\xff\xff\xff"
    path.write_bytes(data)
    with pytest.raises(StoreDamaged, match="damaged"):
        faults(path)


def test_an_index_that_lies_is_told_and_nothing_else_is_asked(path: Path) -> None:
    damage(
        path,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET sql = replace(sql, 'state = 6', 'state = 3') WHERE name = 'outcome_dead'",
    )
    told = faults(path, deep=True)
    assert told
    assert all("the store's file" in fault for fault in told)


def test_urls_whose_capture_is_lost_are_fetched_again_or_dead(path: Path) -> None:
    """A redirect is asked again too; a dead letter stays one, without its capture."""
    with open_audit(path, FrontierSettings(), owned=True) as audit:
        lost = whole(audit)
        assert {captured.state for captured in lost} == {
            UrlState.DONE,
            UrlState.STORED,
            UrlState.REDIRECTED,
            UrlState.DEAD,
        }
        audit.lose(lost)
        assert audit.faults(deep=True) == []
    audit_file(path)

    async def look(store: SqliteFrontier) -> None:
        assert await states(store) == {"queued": 7, "leased": 3, "skipped": 3, "dead": 2}
        counts = await store.counts()
        assert (counts.pages, counts.duplicates) == (0, 0)
        assert [letter.error for letter in await store.dead()] == ["capture_lost", "http_404"]

    play(path, look)


def whole(audit: Audit) -> list:  # type: ignore[type-arg]
    """All captures, read in parts."""
    found = []
    after = 0
    while part := audit.captures(after, 2):
        found += part
        after = part[-1].id
    return found


# -- pace groups --------------------------------------------------------------------------------------------

BY_DOMAIN = GroupSettings(by=GroupBy.DOMAIN)


def grouped(path: Path) -> list[str]:
    """What is wrong with a store whose hosts share a clock by domain, before it is mended; afterwards, nothing is."""
    with open_audit(path, FrontierSettings(group=BY_DOMAIN), owned=True) as audit:
        told = [fault.what for fault in audit.faults(deep=False)]
        audit.mend(T0)
        assert audit.faults(deep=False) == []
    return told


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    """A host of each of two groups is visited, and another of the first waits for its turn."""
    path = tmp_path / "groups.db"

    async def fill(store: SqliteFrontier) -> None:
        await store.claim([*links(2, "a.one.test"), *links(2, "b.one.test"), *links(2, "a.two.test")], T0)
        assert len(await store.lease(wish(), T0)) == 2

    play(path, fill, group=BY_DOMAIN)
    return path


def test_a_sound_store_with_groups_has_no_faults(groups: Path) -> None:
    assert grouped(groups) == []


def test_more_visited_hosts_of_a_group_than_may_be_are_told_and_mended(groups: Path) -> None:
    damage(groups, "UPDATE host SET pace_group = 'domain one.test' WHERE name = 'a.two.test'")
    assert grouped(groups) == ["pace group domain one.test: 2 hosts are visited, and 1 may be"]


def test_a_group_that_is_waited_for_and_that_nobody_will_call_is_told_and_mended(groups: Path) -> None:
    damage(
        groups,
        "UPDATE host SET pace_group = 'domain two.test' WHERE pace_group = 'domain one.test' AND token IS NOT NULL",
        "UPDATE pace_group SET wanted = 0",
    )
    assert "pace group domain one.test: hosts wait for it, and nobody has a turn" in grouped(groups)
