"""Row 14: nothing that a server sends reaches a terminal as anything but text."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crawlspace.cli import VERBS

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\u200b\u2028\x7f\x08"
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
DUMB = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200"}

NOT_HERE = {"demo", "worker", "init"}
"""They show nothing that a server sent: a web of our own, a crawl's progress as `crawl` does, a template."""


def hostile(web: Any) -> None:
    evil = EVIL.encode()
    web.put(
        "http://a.test/",
        b"<title>" + evil + b"</title><link rel=canonical href='/" + evil + b"'>"
        b"<a href='/" + evil + b"'>x</a><a href='javascript:" + evil + b"'>x</a><a href='/moved'>x</a>"
        b"<a href='/broken'>x</a><a href='/status'>x</a><a href='/coding'>x</a><a href='/secret" + evil + b"'>x</a>"
        b"<a href='http://" + evil + b".test/'>x</a><a href='http://a.test/?q=%1b%5b2J%c2%9b'>x</a>",
        b"Content-Type: text/html; charset=utf-8",
        b"ETag: " + evil.replace(b"\x7f", b"").replace(b"\x08", b""),
        b"X-Evil: \x9b31m\xc2\x9b",
    )
    web.put("http://a.test/robots.txt", b"User-agent: *\nDisallow: /secret" + evil + b"\nDisallow: /secret\n")
    web.redirect("http://a.test/moved", b"javascript:\xc2\x9b" + "\u202e".encode())
    web.pages["http://a.test/broken"] = b"HTTP/1.1 200 \x1b[2J\r\nContent-Length: \x1b]0;x\x07\r\n\r\n"
    web.pages["http://a.test/status"] = b"\x1b]0;no http\x07\r\n\r\n"
    web.put("http://a.test/coding", b"x", b"Content-Encoding: \xc2\x9b" + "\u202e".encode())


@pytest.fixture
def crawled(web: Any, command: Callable[..., tuple[int, bytes]], monkeypatch: pytest.MonkeyPatch) -> bytes:
    """What `crawl` says of a hostile site."""
    for name, value in DUMB.items():
        monkeypatch.setenv(name, value)
    for name, value in web.settings().items():
        monkeypatch.setenv("CRAWLSPACE_" + name.replace(".", "__").upper(), toml(value))
    hostile(web)
    code, told = command("crawl", "http://a.test/", f"http://b.test/{EVIL}", EVIL, "--dir", web.directory)
    assert code in (0, 6), told
    return told


def toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = "{inner}"' for key, inner in value.items()) + "}"
    return str(value).replace("'", '"')


def calls(directory: Path, tmp_path: Path) -> dict[str, list[list[str | Path]]]:
    """What every verb is asked, by verb; the directory comes second in most."""
    url, evil = "http://a.test/", f"http://a.test/{EVIL}"
    seeds = tmp_path / "seeds"
    seeds.write_text(f"{EVIL}\n{evil}\n", "utf-8")
    explained = [url, f"{url}moved", f"{url}broken", f"{url}status", f"{url}coding", evil, f"{url}secret{EVIL}"]
    asked: dict[str, list[list[str | Path]]] = {
        "inject": [[directory, f"http://c.test/{EVIL}", EVIL], [directory, "--seeds", seeds]],
        "stats": [[directory]],
        "hosts": [[directory]],
        "explain": [[directory, each] for each in explained],
        "normalize": [["--explain", evil, EVIL], ["--group", evil, EVIL]],
        "rekey": [[directory]],
        "robots": [[f"{url}secret"], [evil, "--agent", EVIL]],
        "fetch": [[each, "--head"] for each in (url, f"{url}broken", f"{url}status", evil)],
        "parse": [[directory, url], [directory, EVIL]],
        "dlq": [["list", directory], *(["show", directory, str(number)] for number in range(1, 10))],
        "host": [["pause", directory, "a.test", EVIL], ["resume", directory, "a.test"]],
        "ignore": [[directory, EVIL], [directory], [directory, f"[{EVIL}"]],
        "prioritize": [[directory, f"glob:*{EVIL}", "3"]],
        "export": [[directory, "-o", tmp_path / f"x.{suffix}"] for suffix in ("csv", "jsonl", "txt", EVIL)],
        "index": [[directory]],
        "check": [[directory, "--deep"]],
        "backup": [[directory, tmp_path / "copy"]],
        "config": [["show", directory], ["check", directory, "-s", f"{EVIL}=1"]],
        "crawl": [["--dir", directory], [EVIL, "--dir", tmp_path / "new"]],
        "duplicates": [[directory, "--min", "2", "--difference"], [directory, "--host", EVIL]],
        "sql": [[directory, "SELECT * FROM outcomes"], [directory, f"SELECT '{EVIL}'"], [directory, EVIL]],
        "reparse": [[directory, "--parser", "links"], [directory, "--parser", EVIL]],
        "rules": [["learned", directory, "--all"], ["learned", directory, "--accept", EVIL]],
        "import": [[tmp_path / "imported", seeds, "--as", "list"], [tmp_path / "imported", tmp_path / EVIL[:10]]],
        "compact": [[directory]],
    }
    return {verb: [[verb, *words] for words in all_words] for verb, all_words in asked.items()}


def test_row_14_no_verb_lets_a_servers_bytes_through(
    crawled: bytes, web: Any, command: Callable[..., tuple[int, bytes]], tmp_path: Path
) -> None:
    assert_plain(crawled, "crawl")
    asked = calls(web.directory, tmp_path)
    assert set(VERBS) - NOT_HERE == set(asked)
    for verb, all_words in asked.items():
        for words in all_words:
            code, told = command(*words)
            assert b"Traceback" not in told, (verb, told)
            assert code != 1 or verb in ("fetch", "robots"), (verb, told)
            assert_plain(told, verb)


def assert_plain(told: bytes, verb: str) -> None:
    for line in told.splitlines():
        text = line.decode("utf-8")
        found = UNSAFE.search(text)
        assert found is None, (verb, text)


@pytest.mark.parametrize("verb", ["stats", "hosts", "dlq", "explain", "parse"])
def test_row_14_json_is_plain_too(
    verb: str, crawled: bytes, web: Any, command: Callable[..., tuple[int, bytes]]
) -> None:
    words = {"dlq": ["dlq", "list", web.directory], "explain": ["explain", web.directory, "http://a.test/coding"]}
    words["parse"] = ["parse", web.directory, "http://a.test/"]
    _, told = command(*words.get(verb, [verb, web.directory]), "--json")
    assert told.strip()
    assert_plain(told, verb)
