"""The verbs with which a person changes a crawl, and those that check and copy it."""

from __future__ import annotations

import json
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import crawlspace as product
from crawlspace.settings import nested
from crawlspace.testing.toyweb import LIGHT, ToyWeb

Command = Callable[..., Any]


@pytest.fixture(scope="module")
def web() -> Iterator[ToyWeb]:
    with ToyWeb(seed=6, features=LIGHT, tls=False) as web:
        yield web


def settings_for(web: ToyWeb, **more: Any) -> dict[str, Any]:
    return {
        "contact": "tests@crawlspace.test",
        "host.delay": 0,
        "retry.wait": 0.05,
        "network.resolve": dict(web.resolve),
        "network.allow": ["127.0.0.1"],
        "identity.hosts": [dict(rule) for rule in web.truth.own_folds],
        **more,
    }


@pytest.fixture(scope="module")
def crawled(web: ToyWeb, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("module") / "crawl"
    product.Crawl(path, list(web.seeds), settings=settings_for(web)).run()
    return path


@pytest.fixture
def crawl(crawled: Path, tmp_path: Path, web: ToyWeb) -> Path:
    """A finished crawl with dead letters."""
    path = Path(shutil.copytree(crawled, tmp_path / "crawl"))
    (path / "crawl.toml").write_text(tomli_w.dumps(nested(settings_for(web))))
    return path


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


# -- dead letters -------------------------------------------------------------------------------------------


def test_dead_letters_are_listed_shown_queued_again_and_dropped(crawlspace: Command, crawl: Path) -> None:
    letters = lines(crawlspace("dlq", "list", crawl, "--json").out)
    assert len(letters) >= 2
    first = letters[0]
    listed = crawlspace("dlq", "list", crawl, "--id", first["id"]).out
    assert str(first["id"]) in listed
    assert first["url"] in listed
    shown = crawlspace("dlq", "show", crawl, first["id"])
    assert first["class"] in shown.out
    assert json.loads(crawlspace("dlq", "show", crawl, first["id"], "--json").out) == first
    again = crawlspace("dlq", "requeue", crawl, "--id", first["id"])
    assert (again.code, again.out) == (0, "requeue: 1 looked, 1 queued\n")
    assert json.loads(crawlspace("explain", crawl, first["url"], "--json").out)["state"] == "queued"
    dropped = json.loads(crawlspace("dlq", "drop", crawl, "--all", "--json").out)
    left = len(letters) - 1
    assert dropped == {"command": "drop", "done": True, "changed": {"looked": left, "dropped": left}}
    assert crawlspace("dlq", "list", crawl).out == "no dead letters\n"
    gone = json.loads(crawlspace("explain", crawl, letters[1]["url"], "--json").out)
    assert (gone["state"], gone["reason"], gone["next"]) == ("skipped", "dropped", "nothing: a person said so")


@pytest.mark.parametrize(
    ("options", "some"),
    [
        (["--class", "http_404"], True),
        (["--status", 404], True),
        (["--status", 418], False),
        (["--host", "nowhere.test"], False),
        (["--pattern", "."], True),
        (["--pattern", "glob:nothing"], False),
        (["--newer", "1d"], True),
        (["--older", "1d"], False),
        (["--older", "0s", "--class", "http_404"], True),
    ],
)
def test_dead_letters_are_chosen_by_what_they_are(
    crawlspace: Command, crawl: Path, options: list[object], some: bool
) -> None:
    listed = lines(crawlspace("dlq", "list", crawl, "--json", *options).out)
    assert bool(listed) is some
    changed = json.loads(crawlspace("dlq", "requeue", crawl, "--json", *options).out)["changed"]
    assert changed.get("queued", 0) + changed.get("out of scope", 0) == len(listed)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["dlq", "requeue", "{crawl}"], "which dead letters?"),
        (["dlq", "drop", "{crawl}"], "which dead letters?"),
        (["dlq", "drop", "{crawl}", "--older", "soon"], "no age such as"),
        (["dlq", "list", "{crawl}", "--pattern", "("], "pattern"),
        (["dlq", "show", "{crawl}", 999_999], "there is no dead letter 999999"),
        (["host", "pause", "{crawl}"], "HOST"),
        (["host", "pause", "{crawl}", "no host"], "is no host"),
        (["host", "pause", "{crawl}/nothing", "a.test"], "there is no crawl directory"),
        (["ignore", "{crawl}", "("], "ignore, pattern 1"),
        (["prioritize", "{crawl}", "(", 1], "PATTERN"),
        (["prioritize", "{crawl}", "x", 10], "10 is not in the range"),
        (["backup", "{crawl}", "{crawl}/copy"], "into itself"),
        (["check", "{crawl}/nothing"], "there is no crawl directory"),
    ],
)
def test_what_makes_no_sense_is_told_in_a_line(
    crawlspace: Command, crawl: Path, arguments: list[object], said: str
) -> None:
    ran = crawlspace(*(str(each).format(crawl=crawl) for each in arguments))
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err


# -- hosts --------------------------------------------------------------------------------------------------


def test_hosts_are_paused_blocked_and_resumed(crawlspace: Command, crawl: Path) -> None:
    facts = {each["host"]: each for each in lines(crawlspace("hosts", crawl, "--json").out)}
    host, other, *_ = sorted(facts)
    assert facts[host]["breaker"] == "closed"
    assert facts[host]["discovered"] >= facts[host]["done"]
    assert all(0 <= each["duplicate_rate"] <= 1 for each in facts.values() if each["done"])
    assert all(each["discovered_per_fetch"] > 0 for each in facts.values() if each["fetched"])
    assert facts[host]["parked"] is None
    assert crawlspace("host", "pause", crawl, host).out == f"{host} is paused\n"
    assert crawlspace("host", "block", crawl, other).out == f"{other} is blocked\n"
    told = crawlspace("hosts", crawl).out
    assert "(parked: paused)" in told
    assert "(parked: blocked)" in told
    done = json.loads(crawlspace("host", "resume", crawl, host, "--json").out)
    assert (done["command"], done["done"]) == (f"{host} is visited again", True)
    assert "parked: paused" not in crawlspace("hosts", crawl).out


def test_explain_says_why_a_queued_url_waits(crawlspace: Command, crawl: Path) -> None:
    letter = lines(crawlspace("dlq", "list", crawl, "--json").out)[0]
    crawlspace("dlq", "requeue", crawl, "--id", letter["id"])
    crawlspace("host", "pause", crawl, letter["host"])
    assert "parked: paused" in crawlspace("explain", crawl, letter["url"]).out


# -- patterns -----------------------------------------------------------------------------------------------


def test_patterns_are_ignored_listed_and_taken_back(crawlspace: Command, crawl: Path) -> None:
    assert crawlspace("ignore", crawl).out == ""
    assert crawlspace("ignore", crawl, "/a/", "glob:http://x/*").out == "ignored: /a/\nignored: glob:http://x/*\n"
    assert lines(crawlspace("ignore", crawl, "--json").out) == [{"pattern": "/a/"}, {"pattern": "glob:http://x/*"}]
    crawlspace("ignore", crawl, "--remove", "/a/")
    assert crawlspace("ignore", crawl).out == "glob:http://x/*\n"


def test_queued_urls_get_another_class(crawlspace: Command, crawl: Path) -> None:
    letter = lines(crawlspace("dlq", "list", crawl, "--json").out)[0]
    crawlspace("dlq", "requeue", crawl, "--id", letter["id"])
    ran = crawlspace("prioritize", crawl, ".", 0)
    assert ran.out == "class 0 for .: 1 looked, 1 reclassed\n"
    assert json.loads(crawlspace("explain", crawl, letter["url"], "--json").out)["class"] == 0


# -- seeds for a crawl that runs ----------------------------------------------------------------------------


def test_seeds_are_injected_into_a_running_crawl(crawlspace: Command, tmp_path: Path, web: ToyWeb) -> None:
    """Another thread owns the crawl, whose only host it may ask once an hour."""
    settings = settings_for(web, **{"host.delay": 3600, "robots.obey": False, "discovery.sitemaps": False})
    started = threading.Event()
    crawl = product.Crawl(
        tmp_path / "crawl", [web.seeds[0]], settings=settings, watch=lambda _event: started.set(), follow=False
    )
    other = next(url for url in web.seeds if url.split("/")[2] != web.seeds[0].split("/")[2])
    loop = threading.Thread(target=crawl.run)
    crawl._seeds.append(product.Request(web.seeds[0] + "never"))
    loop.start()
    try:
        assert started.wait(20)
        ran = crawlspace("inject", tmp_path / "crawl", other, web.seeds[0], "mailto:x", "--json")
        assert json.loads(ran.out) == {"new": 1, "known": 1, "refused": [{"input": "mailto:x", "reason": "scheme"}]}
        assert crawlspace("host", "block", tmp_path / "crawl", web.seeds[0].split("/")[2]).code == 0
    finally:
        loop.join(20)
    assert not loop.is_alive(), "with its host blocked nothing is left to do"
    assert json.loads(crawlspace("explain", tmp_path / "crawl", other, "--json").out)["state"] in (
        "done",
        "redirected",
    )


# -- check and backup ---------------------------------------------------------------------------------------


def test_a_check_ends_with_its_code_and_says_what_it_found(crawlspace: Command, crawl: Path) -> None:
    sound = crawlspace("check", crawl, "--deep")
    assert (sound.code, sound.out[:16]) == (0, "nothing is wrong")
    with closing(sqlite3.connect(crawl / "frontier.db")) as connection:
        connection.execute("UPDATE tally SET n = n + 1 WHERE name = 'done'")
        connection.commit()
    damaged = crawlspace("check", crawl)
    assert damaged.code == 7
    assert "the total of done" in damaged.out
    facts = json.loads(crawlspace("check", crawl, "--json").out)
    assert (facts["found"], facts["repaired"], facts["left"]) == (1, 0, 1)
    repaired = crawlspace("check", crawl, "--repair")
    assert repaired.code == 0
    assert "1 fault, 1 of them repaired" in repaired.out
    assert crawlspace("check", crawl).code == 0


def test_a_backup_is_a_crawl_like_the_one_it_is_of(crawlspace: Command, crawl: Path, tmp_path: Path) -> None:
    ran = crawlspace("backup", crawl, tmp_path / "copy")
    assert ran.code == 0
    assert "it can be resumed" in ran.out
    assert crawlspace("check", tmp_path / "copy", "--deep").code == 0
    assert crawlspace("stats", tmp_path / "copy").out == crawlspace("stats", crawl).out
    facts = json.loads(crawlspace("backup", crawl, tmp_path / "second", "--json").out)
    assert facts["archive_files"] == 1
    again = crawlspace("backup", crawl, tmp_path / "copy")
    assert (again.code, "is there already" in again.err) == (2, True)
