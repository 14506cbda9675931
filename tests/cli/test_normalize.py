"""`crawlspace normalize`: forms, reasons and groups, for any input, in memory that does not grow."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crawlspace.cli.normalize import LINE_LIMIT
from crawlspace.types import Address
from crawlspace.urls import CONSERVATIVE, Identity

Command = Callable[..., Any]

USAGE = 2
MESSY = "HTTP://Example.com:80/a/../b?utm_source=x&b=1&a=2#top"
FORM = "http://example.com/b?a=2&b=1"


class Bytes:
    """Standard input that holds these bytes."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


@pytest.fixture
def piped(crawlspace: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run with these bytes on standard input."""

    def run(content: bytes, *arguments: object) -> Any:
        monkeypatch.setattr(sys, "stdin", Bytes(content))
        return crawlspace("normalize", *arguments)

    return run


def test_it_prints_the_canonical_form_of_each_argument(crawlspace: Command) -> None:
    ran = crawlspace("normalize", MESSY, "https://a.test")
    assert (ran.code, ran.out, ran.err) == (0, f"{FORM}\nhttps://a.test/\n", "")


def test_as_json_each_line_has_fetch_url_form_and_key(crawlspace: Command) -> None:
    """The key is that of no crawl: its hash key is zero."""
    address = Identity(CONSERVATIVE).identify(MESSY)
    assert isinstance(address, Address)
    told = json.loads(crawlspace("normalize", "--json", MESSY).out)
    assert told == {
        "input": MESSY,
        "fetch_url": "http://example.com/b?utm_source=x&b=1&a=2",
        "canonical": FORM,
        "key": address.key.hex(),
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"mailto:me@example.com", "scheme"),
        (b"http://", "host"),
        (b"\xff\xfe\x80", "syntax"),
        (b"http://a.test:99999/", "syntax"),
        (b"relative", "syntax"),
        (b"  ", "empty"),
        (b"http://a.test/" + b"x" * 9000, "too_long"),
        (b"http://a.test/" + b"x" * (2 * LINE_LIMIT), "too_long"),
    ],
    ids=["scheme", "host", "not UTF-8", "port", "relative", "blanks", "long", "longer than what is read"],
)
def test_what_is_no_url_gets_a_reason_and_stops_nothing(piped: Command, text: bytes, reason: str) -> None:
    lines = text + b"\r\n\nhttp://a.test/b\n"
    ran = piped(lines, "--json")
    refused, good = map(json.loads, ran.out.splitlines())
    assert (ran.code, refused["reason"], good["canonical"]) == (0, reason, "http://a.test/b")
    plain = piped(lines).out.splitlines()
    assert plain[0].startswith(f"# refused ({reason}): ")
    assert plain[1:] == ["http://a.test/b"]


def test_a_line_of_just_the_limit_is_one_line(piped: Command) -> None:
    line = b"http://a.test/?" + b"&" * (LINE_LIMIT - 16) + b"\n"
    assert len(line) == LINE_LIMIT
    ran = piped(line + b"http://b.test/\n")
    assert ran.out.splitlines()[1:] == ["http://b.test/"]


def test_explained_each_step_that_changed_something_is_told_with_its_reason(crawlspace: Command) -> None:
    ran = crawlspace("normalize", "--explain", MESSY, "mailto:x")
    lines = ran.out.splitlines()
    assert lines[0] == MESSY
    steps = [line.strip().split(":")[0] for line in lines if line.startswith("  ") and line[2] not in " ="]
    assert steps == ["parse", "fragment", "trackers", "sort-params", "refused"]
    assert f"  = {FORM}" in lines
    assert lines[-1] == "  refused: scheme"


def test_explained_as_json_the_steps_lead_from_input_to_form(crawlspace: Command) -> None:
    told = json.loads(crawlspace("normalize", "--explain", "--json", MESSY).out)
    steps = told["steps"]
    assert (steps[0]["before"], steps[-1]["after"]) == (MESSY, FORM)
    assert [step["after"] for step in steps[:-1]] == [step["before"] for step in steps[1:]]
    assert all(step["why"] and step["source"] for step in steps)
    assert told["policy"] == CONSERVATIVE.identifier


def test_grouped_it_shows_which_inputs_are_one_page(piped: Command) -> None:
    lines = b"http://a.test/?b&a\nmailto:x\nhttp://b.test/\nhttp://a.test/?a&b\nmailto:y\n"
    ran = piped(lines, "--group")
    assert ran.out == (
        "http://a.test/?a&b\n  http://a.test/?b&a\n  http://a.test/?a&b\n"
        "refused: scheme\n  mailto:x\n  mailto:y\nhttp://b.test/\n  http://b.test/\n"
    )
    groups = [json.loads(line) for line in piped(lines, "--group", "--json").out.splitlines()]
    assert groups[0] == {"canonical": "http://a.test/?a&b", "inputs": ["http://a.test/?b&a", "http://a.test/?a&b"]}


def test_rules_come_from_the_settings_and_links_are_read_against_the_base(
    crawlspace: Command, tmp_path: Path
) -> None:
    config = tmp_path / "crawl.toml"
    config.write_text('[identity]\nstrip = ["ref"]\n')
    ran = crawlspace("normalize", "--config", config, "--base", "http://www.a.test/d/", "p?ref=1&x=2")
    assert ran.out == "http://www.a.test/d/p?x=2\n"
    ran = crawlspace("normalize", "-s", "identity.policy=aggressive", "http://www.a.test/index.html")
    assert ran.out == "https://a.test/\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--base", "nowhere", "a"], "--base is no URL (syntax): nowhere"),
        (["--explain", "--group", "http://a/"], "cannot be had at once"),
        (["-s", "identity.polcy=x", "http://a/"], "did you mean identity.policy"),
        (["-s", 'identity.hosts=[{pattern = "("}]', "http://a/"], "no RE2 expression"),
    ],
)
def test_a_wrong_option_is_told_in_one_line(crawlspace: Command, arguments: list[str], words: str) -> None:
    ran = crawlspace("normalize", *arguments)
    assert (ran.code, ran.out) == (USAGE, "")
    assert words in ran.err
    assert "Traceback" not in ran.err


def test_control_characters_of_an_input_reach_no_terminal(piped: Command) -> None:
    ran = piped(b"mailto:\x1b[2J\nhttp://a.test/\x1b[2J\n", "--explain")
    assert "\x1b" not in ran.out


READING = """
import resource, sys
from crawlspace.cli import main
try:
    main()
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def peak_mb(lines: int, *arguments: str) -> float:
    """Most memory that so many different lines take."""
    command = [sys.executable, "-c", READING, "normalize", "--json", *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        for start in range(0, lines, 1000):
            block = "".join(f"http://h{n // 100}.test/page/{n}?b={n}&a=1\n" for n in range(start, start + 1000))
            process.stdin.write(block.encode())
        _, err = process.communicate()
    assert process.returncode == 0, err
    return int(err) / 1024


def test_memory_does_not_grow_with_the_number_of_lines() -> None:
    """Bounded caches are full after the first lines."""
    assert peak_mb(60_000) < peak_mb(20_000) + 8


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_million_lines_take_no_more_memory_than_a_few() -> None:
    assert peak_mb(1_000_000) < peak_mb(20_000) + 8
