"""The verbs as a person uses them, over the toy web."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from crawlspace.cli import demo
from crawlspace.settings import nested
from crawlspace.testing.toyweb import LIGHT, ToyWeb

Command = Callable[..., Any]


@pytest.fixture(scope="module")
def web() -> Iterator[ToyWeb]:
    with ToyWeb(seed=4, features=LIGHT, tls=False) as web:
        yield web


@pytest.fixture
def config(tmp_path: Path, web: ToyWeb) -> Path:
    values = {
        "contact": "tests@crawlspace.test",
        "host.delay": 0,
        "network.resolve": dict(web.resolve),
        "network.allow": ["127.0.0.1"],
        "identity.hosts": [dict(rule) for rule in web.truth.own_folds],
    }
    file = tmp_path / "settings.toml"
    file.write_text(tomli_w.dumps(nested(values)))
    return file


def test_init_writes_a_file_to_edit_and_never_writes_over_it(crawlspace: Command, tmp_path: Path) -> None:
    ran = crawlspace("init", tmp_path / "new", "-s", "host.delay=3")
    assert ran.code == 0
    file = tmp_path / "new" / "crawl.toml"
    assert tomllib.loads(file.read_text())["host"]["delay"] == 3
    file.write_text("contact = 'mine'\n")
    again = crawlspace("init", tmp_path / "new")
    assert "stays as it is" in again.out
    assert file.read_text() == "contact = 'mine'\n"


def test_config_shows_what_is_in_effect_and_checks_it(crawlspace: Command, tmp_path: Path) -> None:
    (tmp_path / "crawl.toml").write_text("[host]\ndelay = 7.0\n")
    shown = crawlspace("config", "show", tmp_path, "-s", "retry.max=9")
    assert tomllib.loads(shown.out)["host"]["delay"] == 7.0
    assert tomllib.loads(shown.out)["retry"]["max"] == 9
    assert json.loads(crawlspace("config", "show", tmp_path, "--json").out)["host"]["delay"] == 7.0
    checked = crawlspace("config", "check", tmp_path)
    assert checked.code == 0
    assert "no contact is set" in checked.out


def test_a_crawl_from_the_command_line_ends_with_its_figures(
    crawlspace: Command, tmp_path: Path, config: Path, web: ToyWeb
) -> None:
    ran = crawlspace("crawl", *web.seeds, "--dir", tmp_path / "crawl", "--config", config)
    assert ran.code == 0, ran.err
    assert "Finished" in ran.out
    stats = json.loads(crawlspace("stats", tmp_path / "crawl", "--json").out)
    assert stats["pages"] >= len(web.truth.pages)
    told = crawlspace("stats", tmp_path / "crawl").out
    assert "known" in told
    assert "duplicates" in told
    hosts = crawlspace("hosts", tmp_path / "crawl", "--limit", 2).out.splitlines()
    assert len(hosts) == 3
    story = crawlspace("explain", tmp_path / "crawl", web.truth.seeds[0]).out
    assert "state         done" in story
    assert "bytes from" in story
    unknown = json.loads(crawlspace("explain", tmp_path / "crawl", "https://elsewhere.example/", "--json").out)
    assert unknown["state"] is None
    assert "out_of_scope" in unknown["next"]
    parsed = crawlspace("parse", tmp_path / "crawl", web.truth.seeds[0]).out
    assert "followed" in parsed
    dead = crawlspace("dlq", "list", tmp_path / "crawl").out
    assert "http_404" in dead
    none = crawlspace("dlq", "list", tmp_path / "crawl", "--class", "http_418").out
    assert "no dead letters of that kind" in none
    missing = crawlspace("parse", tmp_path / "crawl", "https://elsewhere.example/")
    assert (missing.code, "no capture" in missing.err) == (2, True)


def test_a_finished_crawl_with_too_many_dead_letters_says_so(
    crawlspace: Command, tmp_path: Path, config: Path, web: ToyWeb
) -> None:
    ran = crawlspace(
        "crawl", *web.seeds, "--dir", tmp_path / "c", "--config", config, "-s", "budget.dead_letters=0", "-q"
    )
    assert ran.code == 6
    assert ran.out == ""


def test_a_finished_crawl_that_brought_nothing_but_dead_letters_says_so(
    crawlspace: Command, tmp_path: Path, config: Path, web: ToyWeb
) -> None:
    options = ("--dir", tmp_path / "c", "--config", config)
    ran = crawlspace("crawl", f"{web.seeds[0]}no/such/page", *options, "-s", "budget.dead_letters=9")
    assert (ran.code, f"Not one page came: see crawlspace dlq list {tmp_path / 'c'}" in ran.out) == (6, True)
    assert "http_404" in crawlspace("dlq", "list", tmp_path / "c").out
    assert crawlspace("crawl", web.seeds[0], *options, "-q").code == 0


def test_inject_counts_new_known_and_refused(crawlspace: Command, tmp_path: Path, web: ToyWeb) -> None:
    ran = crawlspace("inject", tmp_path, "http://127.0.0.1/", "http://127.0.0.1/#x", "mailto:a@b", "--json")
    assert json.loads(ran.out) == {"new": 1, "known": 1, "refused": [{"input": "mailto:a@b", "reason": "scheme"}]}


def test_fetch_shows_one_answer_and_obeys_robots(
    crawlspace: Command, tmp_path: Path, config: Path, web: ToyWeb
) -> None:
    url = web.truth.seeds[0]
    facts = json.loads(crawlspace("fetch", url, "--config", config, "--json").out)
    assert facts["status"] == 200
    assert facts["url"] == url
    target = tmp_path / "body"
    assert crawlspace("fetch", url, "--config", config, "-o", target).code == 0
    assert target.read_bytes().startswith(b"<")
    head = crawlspace("fetch", url, "--config", config, "--head")
    assert "HTTP/1.1 200" in head.out
    forbidden = sorted(web.truth.disallowed)[0]
    refused = crawlspace("fetch", forbidden, "--config", config)
    assert refused.code == 1
    assert "robots.txt says" in refused.err
    dead = crawlspace("fetch", "http://127.0.0.1:9/", "--config", config)
    assert dead.code == 1


def test_the_demo_crawls_the_toy_web_and_says_where_to_look(crawlspace: Command, tmp_path: Path) -> None:
    ran = crawlspace("demo", "--dir", tmp_path / "demo")
    assert ran.code == 0, ran.err
    assert "Finished" in ran.out
    assert f"crawlspace explain {tmp_path / 'demo'}" in ran.out


def test_help_and_version_name_the_product(crawlspace: Command) -> None:
    assert crawlspace("--version").out.startswith("crawlspace ")
    assert "normalize" in crawlspace("--help").out


def test_the_demo_names_a_program_that_can_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/crawlspace")
    assert demo.program(".venv/bin/crawlspace") == "crawlspace"
    assert demo.program("/x/crawlspace/__main__.py").endswith(" -m crawlspace")
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert demo.program(".venv/bin/crawlspace") == ".venv/bin/crawlspace"
