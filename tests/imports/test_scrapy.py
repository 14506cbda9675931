"""A Scrapy job's directory: what was still to be asked for is queued, and no pickle is ever loaded."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crawlspace.app.importing import scrapy
from crawlspace.app.importing.imported import Imported
from crawlspace.app.importing.scrapy import waiting

Run = Callable[..., Any]


def request(url: str, method: str = "GET", **more: object) -> bytes:
    """A request as Scrapy 2 writes it."""
    facts = {
        "url": url,
        "callback": "parse",
        "errback": None,
        "headers": {b"Referer": [b"http://a.test/url"]},
        "method": method,
        "body": b"",
        "cookies": {},
        "meta": {"depth": 1, "url": "http://no.test/", "method": "no"},
        **more,
    }
    return pickle.dumps(facts, protocol=4)


def last_in_first_out(path: Path, *entries: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    body = b"".join(entry + len(entry).to_bytes(4, "big") for entry in entries)
    path.write_bytes(len(entries).to_bytes(4, "big") + body)


def first_in_first_out(folder: Path, *entries: bytes, given: int = 0) -> None:
    """With so many entries given out already."""
    folder.mkdir(parents=True)
    parts = [len(entry).to_bytes(4, "big") + entry for entry in entries]
    (folder / "q00000").write_bytes(b"".join(parts))
    tail = [0, given, sum(map(len, parts[:given]))]
    (folder / "info.json").write_text(json.dumps({"chunksize": 100, "size": 1, "tail": tail, "head": [0, 9]}))


def read(job: Path) -> tuple[list[str], Imported]:
    done = Imported()
    return list(waiting(job, done)), done


def test_the_requests_of_both_kinds_of_queue_are_read(tmp_path: Path) -> None:
    queue = tmp_path / "requests.queue"
    last_in_first_out(queue / "0", request("http://a.test/1"), request("http://a.test/2"))
    first_in_first_out(queue / "a.test" / "-1", *(request(f"http://a.test/f{n}") for n in range(3)), given=1)
    (queue / "active.json").write_text("[0]")
    urls, done = read(tmp_path)
    assert urls == ["http://a.test/2", "http://a.test/1", "http://a.test/f1", "http://a.test/f2"]
    assert (done.damaged, not done.passed) == (0, True)


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    last_in_first_out(
        tmp_path / "requests.queue" / "0",
        request("http://a.test/post", "POST"),
        b"\x80\x04 torn",
        b"marshalled",
        b"\x80" + b"x" * scrapy.REQUEST_LIMIT,
        pickle.dumps({"no": "address"}, protocol=4),
        request("http://a.test/"),
    )
    (tmp_path / "requests.seen").write_bytes(b"\0\x14" + bytes(20))
    (tmp_path / "spider.state").write_bytes(pickle.dumps({}))
    urls, done = read(tmp_path)
    assert urls == ["http://a.test/"]
    assert done.passed == {
        "bytes of fingerprints in requests.seen, of which no URL can be made": 22,
        "spider.state, a pickle, which is never loaded": 1,
        "requests of another method than GET": 1,
        "requests that cannot be read": 2,
        "requests that are no pickles": 1,
        "requests of too many bytes": 1,
    }


@pytest.mark.parametrize("data", [b"", b"\0\0", b"\0\0\0\1", b"\0\0\0\1" + b"\xff" * 40, b"x" * 100])
def test_files_that_are_no_queue_end(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "requests.queue").mkdir()
    (tmp_path / "requests.queue" / "0").write_bytes(data)
    assert read(tmp_path)[0] == []


class Bomb:
    """What runs code when it is loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("exploded"),)


def test_no_pickle_is_loaded(crawlspace: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    job = tmp_path / "job"
    last_in_first_out(job / "requests.queue" / "0", request("http://a.test/", cb_kwargs=Bomb()), pickle.dumps(Bomb()))
    (job / "spider.state").write_bytes(pickle.dumps(Bomb()))
    ran = crawlspace("import", tmp_path / "crawl", job, "--json")
    assert (ran.code, ran.facts["queued"]) == (0, 1)
    assert not (tmp_path / "exploded").exists()


def test_a_job_goes_on_as_a_crawl(crawlspace: Run, known: Run, tmp_path: Path) -> None:
    """Its feed tells what it has visited, its queue what it had not."""
    job, feed, crawl = tmp_path / "job", tmp_path / "items.jl", tmp_path / "crawl"
    last_in_first_out(job / "requests.queue" / "0", request("http://a.test/next"), request("http://a.test/seen"))
    feed.write_text('{"url": "http://a.test/seen"}\n')
    facts = crawlspace("import", crawl, feed, job, "--json").facts
    assert (facts["visited"], facts["queued"], facts["known"]) == (1, 1, 1)
    found = known(crawl, "http://a.test/next", "http://a.test/seen")
    assert (found.state("http://a.test/next"), found.state("http://a.test/seen")) == ("queued", "skipped")
    again = crawlspace("import", crawl, feed, job, "--json").facts
    assert (again["visited"], again["queued"], again["known"]) == (0, 0, 3)
