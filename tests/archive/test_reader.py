"""Whatever lies in a file, reading gives captures or says that it is damaged; it never hangs or bursts."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.archive.disk import RealDisk
from crawlspace.archive.members import deflate
from crawlspace.archive.reader import Reader
from crawlspace.archive.record import encode
from crawlspace.archive.warc import WarcArchive
from crawlspace.errors import StoreDamaged, StoreError
from crawlspace.exchange import Capture, Truncated
from crawlspace.types import Pointer

MakeCapture = Callable[..., Capture]
MakeArchive = Callable[..., WarcArchive]

SAMPLES = Path(__file__).parents[1] / "data" / "warc"
CAP = 1 << 20
FIELDS = {
    "WARC-Type": "response",
    "WARC-Record-ID": "<urn:x>",
    "WARC-Date": "2023-11-14T22:13:20Z",
    "WARC-Target-URI": "http://a.test/",
}
BLOCK = b"HTTP/1.1 200 OK\r\n\r\nbody"


def record(block: bytes = BLOCK, **fields: str) -> bytes:
    given = {**FIELDS, **{name.replace("_", "-"): value for name, value in fields.items()}}
    return deflate(encode([pair for pair in given.items() if pair[1]], block), 1)


def reader(directory: Path) -> Reader:
    return Reader(RealDisk(), directory, CAP)


def put(directory: Path, data: bytes) -> dict[str, int]:
    (directory / "x.warc.gz").write_bytes(data)
    return {"x.warc.gz": len(data)}


@pytest.mark.parametrize(
    ("file", "urls"),
    [
        ("cc.warc.gz", ["http://commoncrawl.org/"]),
        ("example.warc.gz", ["http://example.com/", "http://example.com/"]),
        ("example-wget-bad-target-uri.warc.gz", ["http://example.com/"]),
        (
            "post-test.warc.gz",
            ["http://httpbin.org/post", "http://httpbin.org/post", "http://httpbin.org/post?foo=bar"],
        ),
        ("example-resource.warc.gz", []),
        ("example-space-in-target-uri.warc.gz", []),
        ("block-sized-records.warc.gz", []),
        ("gzip_extra_sl.warc.gz", []),
        ("clipped.warc.gz", None),
        ("example-bad.warc.gz", None),
        ("example-bad-non-chunked.warc.gz", None),
        ("example-wrong-chunks.warc.gz", None),
    ],
)
def test_archives_of_other_writers_are_read_or_refused(file: str, urls: list[str] | None) -> None:
    """Responses and revisits are captures, other records passed over, broken files are said to be damaged."""
    found = reader(SAMPLES).scan({file: (SAMPLES / file).stat().st_size})
    if urls is None:
        with pytest.raises(StoreDamaged, match=f"of {file} cannot be read"):
            list(found)
    else:
        assert [capture.url for _, capture in found] == urls


def test_a_request_before_its_response_is_not_taken_for_the_next_one(tmp_path: Path) -> None:
    """Only a record that names the response belongs to it."""
    request = record(b"HEAD / HTTP/1.1\r\n\r\n", WARC_Type="request", WARC_Concurrent_To="<urn:x>")
    other = record(b"PUT / HTTP/1.1\r\n\r\n", WARC_Type="request", WARC_Concurrent_To="<urn:y>")
    files = put(tmp_path, other + record() + request + record() + other)
    captures = [capture for _, capture in reader(tmp_path).scan(files)]
    assert [(capture.method, capture.request_head[:4]) for capture in captures] == [("HEAD", b"HEAD"), ("GET", b"")]


def test_a_record_without_an_id_has_no_request(tmp_path: Path) -> None:
    """Two absent names are no match."""
    request = record(b"PUT / HTTP/1.1\r\n\r\n", WARC_Type="request", WARC_Record_ID="")
    files = put(tmp_path, record(WARC_Record_ID="") + request)
    ((_, capture),) = reader(tmp_path).scan(files)
    assert capture.request_head == b""


@pytest.mark.parametrize(
    ("word", "meaning"),
    [("length", Truncated.LENGTH), ("disconnect", Truncated.DISCONNECT), ("unspecified", Truncated.LENGTH)],
)
def test_a_truncated_body_is_never_taken_for_a_whole_one(tmp_path: Path, word: str, meaning: Truncated) -> None:
    """Words that we do not write mean that it is not whole."""
    ((_, capture),) = reader(tmp_path).scan(put(tmp_path, record(WARC_Truncated=word)))
    assert capture.truncated is meaning


@pytest.mark.parametrize(("block", "status"), [(b"HTTP/1.1 2000 OK\r\n\r\n", 0), (b"", 0), (b"ICY 200\r\n\r\n", 200)])
def test_a_head_without_a_status_has_status_0(tmp_path: Path, block: bytes, status: int) -> None:
    """Three digits or none."""
    ((_, capture),) = reader(tmp_path).scan(put(tmp_path, record(block)))
    assert capture.status == status
    assert capture.response_head + capture.payload == block


@pytest.mark.parametrize(
    "bad",
    [
        record(WARC_Target_URI=""),
        record(WARC_Date=""),
        record(WARC_Block_Digest="sha1:" + "A" * 32),
        record(bytes(CAP + 65_536)),
        record()[:-1],
        b"\0" * 100,
        record() + b"\0" * 100,
        deflate(b"", 1),
    ],
    ids=["no address", "no date", "wrong digest", "too large", "cut", "zeros", "zeros after", "empty member"],
)
def test_a_damaged_file_is_said_to_be_damaged(tmp_path: Path, bad: bytes) -> None:
    """With the file and the place."""
    files = put(tmp_path, record() + bad)
    with pytest.raises(StoreDamaged, match=r"byte \d+ of x\.warc\.gz cannot be read"):
        list(reader(tmp_path).scan(files))


def test_a_file_shorter_than_it_should_be_is_damaged(tmp_path: Path) -> None:
    """A length that is told must be there."""
    put(tmp_path, record())
    with pytest.raises(StoreDamaged, match="ends too early"):
        list(reader(tmp_path).scan({"x.warc.gz": len(record()) + 1}))


@pytest.mark.parametrize(
    "pointer",
    [
        Pointer("../x.warc.gz", 0, 10),
        Pointer("/etc/passwd", 0, 10),
        Pointer("", 0, 10),
        Pointer("x.warc.gz\0", 0, 10),
        Pointer("x.warc.gz\n", 0, 10),
        Pointer(".x.warc.gz", 0, 10),
        Pointer("a" * 4096 + ".warc.gz", 0, 10),
        Pointer("x.warc.gz", -1, 10),
        Pointer("x.warc.gz", 0, 0),
        Pointer("x.warc.gz", 0, len(record()) - 1),
        Pointer("x.warc.gz", 0, len(record()) + 1),
        Pointer("x.warc.gz", 1, len(record()) - 1),
        Pointer("x.warc.gz", 1 << 70, 10),
        Pointer("x.warc.gz", len(record()), len(record(WARC_Type="resource"))),
        Pointer("missing.warc.gz", 0, 10),
        Pointer("link.warc.gz", 0, len(record())),
        Pointer("pipe.warc.gz", 0, 10),
        Pointer("directory.warc.gz", 0, 10),
    ],
    ids=lambda pointer: f"{pointer.file[:20]!r}-{pointer.offset}-{pointer.length}",
)
def test_a_pointer_to_anything_else_than_a_response_is_damage(tmp_path: Path, pointer: Pointer) -> None:
    """Other directories, links, pipes, other places and other records: nothing of it is read as a capture."""
    put(tmp_path, record() + record(WARC_Type="resource"))
    (tmp_path / "link.warc.gz").symlink_to(tmp_path / "x.warc.gz")
    os.mkfifo(tmp_path / "pipe.warc.gz")
    (tmp_path / "directory.warc.gz").mkdir()
    with pytest.raises(StoreDamaged):
        reader(tmp_path).open(pointer)
    assert reader(tmp_path).open(Pointer("x.warc.gz", 0, len(record()))).payload == b"body"


@pytest.mark.parametrize("after", [b"\0" * 50, deflate(b"no record", 1), b"\x1f", record()])
def test_a_response_opens_whatever_follows_it(tmp_path: Path, after: bytes) -> None:
    """The slice that the pointer names is enough; the request is an extra."""
    put(tmp_path, record() + after)
    found = reader(tmp_path).open(Pointer("x.warc.gz", 0, len(record())))
    assert (found.payload, found.request_head, found.method) == (b"body", b"", "GET")


def test_a_file_that_vanishes_is_damage_and_a_directory_that_vanishes_an_error(
    archive: MakeArchive, capture: MakeCapture, directory: Path
) -> None:
    """Neither shows a traceback."""
    kept = archive()

    async def run() -> Pointer:
        pointer = await kept.append(capture())
        await kept.close()
        return pointer

    pointer = asyncio.run(run())
    found = kept.scan()
    assert next(found)[0] == pointer
    with pytest.raises(StoreDamaged, match="No such file"):
        list(reader(directory).scan({"gone.warc.gz": 10}))
    (directory / pointer.file).unlink()
    directory.rmdir()
    with pytest.raises(StoreError, match="cannot be used: No such file"):
        list(kept.scan())


@given(st.lists(st.one_of(st.binary(max_size=80), st.just(record()), st.just(deflate(b"WARC/1.1\r\n\r\n", 1)))))
def test_arbitrary_bytes_give_captures_or_damage(pieces: list[bytes]) -> None:
    """In any mixture with true records."""
    with tempfile.TemporaryDirectory() as name:
        files = put(Path(name), b"".join(pieces))
        whole = all(piece == record() for piece in pieces)
        found = reader(Path(name)).scan(files)
        with nullcontext() if whole else suppress(StoreDamaged):
            assert all(capture.payload == b"body" for _, capture in found)
