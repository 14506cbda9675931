"""Recounts the tables of an embedded store and compares them with every number it keeps.

What it asserts holds after each transaction. It reads whole tables: for small stores in tests.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

from crawlspace.frontier.settings import CLASSES
from crawlspace.states import UrlState
from crawlspace.types import HOST_BYTES, PATH_DEPENDENT, Reason

_PLACES = """
  SELECT id, hid, tail FROM queue
  UNION ALL SELECT id, hid, tail FROM delayed
  UNION ALL SELECT id, hid, tail FROM outcome
"""
_WAITING = "SELECT (SELECT count(*) FROM queue) + (SELECT count(*) FROM delayed)"
_HOSTS = "SELECT hid, n_queued, n_leased, n_delayed, done, dead, token, ready, parked, class, duplicates FROM host"
_QUEUED = "SELECT count(*) FROM queue WHERE hid = ?"
_DELAYED = "SELECT count(*) FROM delayed WHERE hid = ?"
_COPIES = "SELECT count(copy_of) FROM outcome WHERE hid = ?"
_WAYS = """
  SELECT s.way, q.class, q.depth FROM queue q JOIN seen s ON s.id = q.id WHERE s.way IS NOT NULL
  UNION ALL SELECT s.way, d.class, d.depth FROM delayed d JOIN seen s ON s.id = d.id WHERE s.way IS NOT NULL
"""
_ENDED = "SELECT count(*) FROM outcome WHERE hid = ? AND state = ?"


def audit(connection: sqlite3.Connection) -> None:
    """Every URL in one place and one state; totals, hosts, leases and refusals as their rows say."""
    _each_url_is_in_one_place(connection)
    leased = _leases_hold_queued_urls(connection)
    _totals(connection, leased)
    _hosts(connection, leased)
    _refusals(connection)
    _groups(connection)
    _ways(connection)


def audit_file(path: Path) -> None:
    """Audit a file that somebody else may have open."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        audit(connection)
    finally:
        connection.close()


def integrity(path: Path) -> str:
    """SQLite's own opinion of a file: `ok` when it is sound."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return str(connection.execute("PRAGMA integrity_check").fetchone()[0])
    finally:
        connection.close()


def schema(connection: sqlite3.Connection) -> list[Any]:
    """All tables and indexes, as they were made."""
    return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name").fetchall()


def _each_url_is_in_one_place(connection: sqlite3.Connection) -> None:
    rows = connection.execute(_PLACES).fetchall()
    places = [(number, hid.to_bytes(HOST_BYTES, "big") + tail) for number, hid, tail in rows]
    seen = connection.execute("SELECT id, fp FROM seen").fetchall()
    assert sorted(places) == sorted(seen)
    assert len({number for number, _ in places}) == len(places)


def _leases_hold_queued_urls(connection: sqlite3.Connection) -> Counter[int]:
    """How many URLs of each host are leased."""
    leased: Counter[int] = Counter()
    live = set(connection.execute("SELECT token, hid FROM host WHERE token IS NOT NULL"))
    assert set(connection.execute("SELECT token, hid FROM lease")) == live
    for token, hid, held in connection.execute("SELECT token, hid, urls FROM lease"):
        for _, number in json.loads(held):
            row = connection.execute("SELECT settled FROM queue WHERE hid = ? AND id = ?", (hid, number)).fetchone()
            leased[hid] += row is not None and row[0] != token
    return leased


def _totals(connection: sqlite3.Connection, leased: Counter[int]) -> None:
    counted: Counter[str] = Counter({state.name.lower(): 0 for state in UrlState})
    for state, n in connection.execute("SELECT state, count(*) FROM outcome GROUP BY state"):
        counted[UrlState(state).name.lower()] = n
    waiting = _one(connection, _WAITING)
    counted["leased"] = leased.total()
    counted["queued"] = waiting - leased.total()
    counted["hosts"] = _one(connection, "SELECT count(*) FROM host WHERE met")
    counted["fetches"] = _one(connection, "SELECT coalesce(sum(fetched), 0) FROM host")
    counted["refused_beyond_cap"] = _one(connection, "SELECT coalesce(sum(beyond), 0) FROM refusal")
    counted["duplicates"] = _one(connection, "SELECT count(copy_of) FROM outcome")
    kept = dict(connection.execute("SELECT name, n FROM tally"))
    assert {name: kept[name] for name in counted} == dict(counted)


def _hosts(connection: sqlite3.Connection, leased: Counter[int]) -> None:
    for row in connection.execute(_HOSTS).fetchall():
        hid, n_queued, n_leased, n_delayed, done, dead, token, ready, parked, best, copies = row
        queued = _one(connection, _QUEUED, hid)
        delayed = _one(connection, _DELAYED, hid)
        assert (n_queued, n_leased, n_delayed) == (queued, leased[hid], delayed)
        assert done == _one(connection, _ENDED, hid, UrlState.DONE)
        assert dead == _one(connection, _ENDED, hid, UrlState.DEAD)
        assert copies == _one(connection, _COPIES, hid)
        assert ready == (queued > 0 and parked is None)
        if queued and token is None:
            assert best == _one(connection, "SELECT min(class) FROM queue WHERE hid = ?", hid)


def _groups(connection: sqlite3.Connection) -> None:
    """Whoever waits for a pace group is called, now or when one of its hosts is let go."""
    waiting = connection.execute("SELECT DISTINCT pace_group FROM host WHERE parked = 'group'").fetchall()
    for (name,) in waiting:
        leased = _one(connection, "SELECT count(*) FROM host WHERE pace_group = ? AND token IS NOT NULL", name)
        wanted = _one(connection, "SELECT count(*) FROM pace_group WHERE name = ? AND wanted", name)
        assert leased or wanted, f"hosts wait for {name} and nobody will call them"


def _one(connection: sqlite3.Connection, question: str, *parameters: int | str) -> int:
    n: int = connection.execute(question, parameters).fetchone()[0]
    return n


def _ways(connection: sqlite3.Connection) -> None:
    """No URL is worse than the way that its key has, and none that a better way undoes has one."""
    for way, front_class, depth in connection.execute(_WAYS):
        assert front_class <= way % CLASSES
        assert depth <= way // CLASSES
    refused = connection.execute(
        "SELECT o.reason FROM outcome o JOIN seen s ON s.id = o.id WHERE o.state = 5 AND s.way IS NOT NULL"
    )
    assert not PATH_DEPENDENT & {Reason(reason) for (reason,) in refused}


def _refusals(connection: sqlite3.Connection) -> None:
    rows = connection.execute("SELECT hid, reason, count(*) FROM outcome WHERE state = 5 GROUP BY hid, reason")
    kept = connection.execute("SELECT hid, reason, kept FROM refusal WHERE kept > 0")
    assert sorted(rows) == sorted(kept)
