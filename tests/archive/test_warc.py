"""The archive as its users see it: what goes in comes out, and other people's tools agree."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import msgspec
import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType
from warcio.archiveiterator import ArchiveIterator as WarcioIterator
from warcio.checker import Checker

from crawlspace.archive.disk import RealDisk
from crawlspace.archive.warc import ArchiveSettings, WarcArchive
from crawlspace.errors import Bug, ConfigError, CrawlspaceError, StoreError
from crawlspace.exchange import Capture, Facts, Truncated
from crawlspace.testing.clock import ManualClock
from crawlspace.types import Pointer

MakeCapture = Callable[..., Capture]
MakeArchive = Callable[..., WarcArchive]

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
SHAPES = {
    "plain": {},
    "no body": {"payload": b""},
    "chunk framing": {"response_head": CHUNKED, "payload": b"5;x=y\r\nhello\r\n0\r\nTrailer: 1\r\n\r\n"},
    "lying chunk framing": {"response_head": CHUNKED, "payload": b"<!doctype html>"},
    "empty lines in the body": {"payload": b"\r\n\r\n\n\nHTTP/1.1 200 OK\r\n\r\n"},
    "a record in the body": {
        "payload": b"\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\nContent-Length: 0\r\n\r\n\r\n\r\n"
    },
    "a gzip member in the body": {"payload": bytes.fromhex("1f8b08000000000000ff03000000000000000000")},
    "bare line feeds": {"response_head": b"HTTP/1.0 404 No\nX: 1\n\n", "status": 404},
    "no reason phrase": {"response_head": b"HTTP/1.1 503\r\n\r\n", "status": 503},
    "redirect": {"response_head": b"HTTP/1.1 301 Moved\r\nLocation: /b\r\n\r\n", "status": 301, "payload": b""},
    "folded line": {"response_head": b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n"},
    "line that looks empty": {"response_head": b"HTTP/1.1 200 OK\r\nA: b\r\n \t\r\nC: d\r\n\r\n"},
    "field without a name": {"response_head": b"HTTP/1.1 200 OK\r\n: x\r\n\r\n"},
    "cut by us": {"truncated": Truncated.LENGTH},
    "broken off": {"truncated": Truncated.DISCONNECT},
    "timed out": {"truncated": Truncated.TIME},
    "no request kept": {"request_head": b""},
    "post": {"request_head": b"POST / HTTP/1.1\r\nHost: a\r\n\r\n", "request_body": b"\r\n\r\nx=1", "method": "POST"},
    "version 6 address": {"address": "2001:db8::1"},
    "no address": {"address": ""},
    "spoken over HTTP/2": {"protocol": "h2"},
    "before 1970": {"at": -1},
    "any bytes": {"payload": random.Random(7).randbytes(70_000)},
    "large and repeating": {"payload": b"0123456789abcdef" * 200_000},
}


def store(archive: WarcArchive, captures: Sequence[Capture]) -> list[Pointer]:
    async def run() -> list[Pointer]:
        pointers = [await archive.append(each) for each in captures]
        await archive.close()
        return pointers

    return asyncio.run(run())


def faults_found_by_warcio(directory: Path) -> int:
    files = [str(path) for path in sorted(directory.glob("*.warc.gz"))]
    assert files
    return int(Checker(SimpleNamespace(inputs=files, verbose=False)).process_all())


def fields_of(path: Path) -> list[dict[str, str]]:
    with path.open("rb") as file:
        return [dict(record.rec_headers.headers) for record in WarcioIterator(file)]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_capture_comes_back_as_it_went_in(
    archive: MakeArchive, capture: MakeCapture, directory: Path, shape: dict[str, object]
) -> None:
    """By its pointer and in a scan; and no check by warcio finds a fault."""
    kept = archive()
    given = [capture(url="http://first.test/"), capture(**shape), capture(url="http://last.test/")]
    pointers = store(kept, given)
    assert [kept.open(pointer) for pointer in pointers] == given
    assert list(kept.scan()) == list(zip(pointers, given, strict=True))
    assert faults_found_by_warcio(directory) == 0


def test_fastwarc_reads_every_record_and_finds_its_digest_right(
    archive: MakeArchive, capture: MakeCapture, directory: Path
) -> None:
    """Three records of warcinfo, response and request, with both digests of the response."""
    store(archive(), [capture(**shape) for shape in SHAPES.values()])
    (path,) = directory.iterdir()
    kinds = []
    with path.open("rb") as file:
        for record in ArchiveIterator(file, parse_http=False):
            kinds.append(record.record_type)
            assert record.verify_block_digest()
    with_request = sum(1 for shape in SHAPES.values() if shape.get("request_head") != b"")
    assert kinds.count(WarcRecordType.warcinfo) == 1
    assert kinds.count(WarcRecordType.response) == len(SHAPES)
    assert kinds.count(WarcRecordType.request) == with_request


def test_the_fields_are_those_of_the_standard(archive: MakeArchive, capture: MakeCapture, directory: Path) -> None:
    """Digests are known answers of sha1sum over the block and the payload; the address loses its port."""
    store(archive(robots="obey"), [capture(address="[2001:db8::1]:443", truncated=Truncated.TIME)])
    (path,) = directory.iterdir()
    info, response, request = fields_of(path)
    assert info["WARC-Type"] == "warcinfo"
    assert info["WARC-Filename"] == path.name
    assert response["WARC-Date"] == "2023-11-14T22:13:20.123Z"
    assert response["WARC-Target-URI"] == "https://shop.test/a?b=c"
    assert response["WARC-IP-Address"] == "2001:db8::1"
    assert response["WARC-Truncated"] == "time"
    assert response["WARC-Payload-Digest"] == "sha1:3CURHRYR54XL2CVXV2KABN2Y3JA4O4B2"
    assert response["WARC-Warcinfo-ID"] == request["WARC-Warcinfo-ID"] == info["WARC-Record-ID"]
    assert response["Content-Type"] == "application/http;msgtype=response"
    assert request["Content-Type"] == "application/http;msgtype=request"
    assert request["WARC-Concurrent-To"] == response["WARC-Record-ID"]


def test_another_protocol_than_http_1_is_named_in_both_records(
    archive: MakeArchive, capture: MakeCapture, directory: Path
) -> None:
    store(archive(), [capture(protocol="h2"), capture()])
    (path,) = directory.iterdir()
    assert [fields["WARC-Protocol"] for fields in fields_of(path) if "WARC-Protocol" in fields] == ["h2", "h2"]


def test_record_ids_are_all_different_and_are_uuids(
    archive: MakeArchive, capture: MakeCapture, directory: Path
) -> None:
    """The same capture ten times over has thirty ids."""
    store(archive(), [capture(facts=Facts(id=1))] * 10)
    (path,) = directory.iterdir()
    ids = [fields["WARC-Record-ID"] for fields in fields_of(path)]
    assert len(set(ids)) == 31
    for name in ids:
        assert UUID(name.removeprefix("<urn:uuid:").removesuffix(">")).version == 8


def test_the_first_record_tells_who_made_the_file(
    archive: MakeArchive, capture: MakeCapture, directory: Path
) -> None:
    """Software, format, crawl and, when given, the robots policy; a line break cannot add a line."""
    store(archive(crawl="My\r\nhostname: x", robots="obey"), [capture()])
    (path,) = directory.iterdir()
    with path.open("rb") as file:
        text = next(iter(WarcioIterator(file))).content_stream().read().decode()
    assert text.splitlines() == [
        "software: crawlspace/0 (test)",
        "format: WARC File Format 1.1",
        "conformsTo: https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        "isPartOf: My hostname: x",
        "robots: obey",
    ]


@pytest.mark.parametrize(
    ("crawl", "stem"),
    [
        ("docs", "docs"),
        ("My Crawl 2", "my-crawl-2"),
        ("../../etc/passwd", "etc-passwd"),
        ("/", "crawl"),
        ("", "crawl"),
        ("\0\r\n", "crawl"),
        ("CON", "con"),
        ("Müller", "m-ller"),
        ("a" * 5000, "a" * 60),
        ("-x-", "x"),
    ],
)
def test_a_file_name_is_made_of_safe_letters_only(
    archive: MakeArchive, capture: MakeCapture, directory: Path, crawl: str, stem: str
) -> None:
    """Whatever a crawl is called, its files lie in its directory under a plain name."""
    (pointer,) = store(archive(crawl=crawl, worker=3), [capture()])
    assert pointer.file == f"{stem}-20231114221320-00000-3.warc.gz"
    assert [path.name for path in directory.iterdir()] == [pointer.file]


def test_a_file_that_is_there_is_never_written_again(
    archive: MakeArchive, capture: MakeCapture, directory: Path
) -> None:
    """A second start in the same second takes the next number, and a link at that name is not followed."""
    outside = directory.parent / "outside"
    first = store(archive(), [capture()])
    before = (directory / first[0].file).read_bytes()
    (directory / first[0].file.replace("00000", "00001")).symlink_to(outside)
    second = store(archive(), [capture()])
    assert second[0].file == first[0].file.replace("00000", "00002")
    assert (directory / first[0].file).read_bytes() == before
    assert not outside.exists()


def test_a_new_file_begins_when_the_old_one_is_large(
    archive: MakeArchive, capture: MakeCapture, directory: Path
) -> None:
    """Each file passes the limit by one capture at most, and begins with its own warcinfo."""
    limit = 1 << 20
    kept = archive(settings=ArchiveSettings(max_file=limit))
    body = random.Random(1).randbytes(300_000)
    pointers = store(kept, [capture(payload=body)] * 10)
    sizes = [path.stat().st_size for path in sorted(directory.iterdir())]
    assert len(sizes) == 3
    assert all(limit <= size < limit + 310_000 for size in sizes[:-1])
    assert [pointer for pointer, _ in kept.scan()] == pointers
    assert faults_found_by_warcio(directory) == 0


def test_a_new_file_begins_when_the_old_one_is_a_day_old(archive: MakeArchive, capture: MakeCapture) -> None:
    """Age counts from the file's making; a clock set back ends no file."""
    clock = ManualClock()
    kept = archive(clock=clock)

    async def run() -> list[str]:
        files = []
        for seconds in (0, 86_399, 1, 86_400):
            clock.advance(seconds * 1000)
            files.append((await kept.append(capture())).file)
        clock.step(-3_600_000)
        files.append((await kept.append(capture())).file)
        await kept.close()
        return files

    first, second, third, fourth, fifth = asyncio.run(run())
    assert first == second
    assert fourth == fifth
    assert len({second, third, fourth}) == 3


SECRET = b"c4n4ry"


@pytest.mark.parametrize(
    "line",
    [
        b"Authorization: Bearer " + SECRET,
        b"authorization:" + SECRET,
        b"Cookie: a=b; sid=" + SECRET,
        b"COOKIE\t: sid=" + SECRET,
        b"Proxy-Authorization: Basic " + SECRET,
        b"Proxy-Anything: " + SECRET,
        b"Cookie: a=b;\r\n sid=" + SECRET + b"\r\n\tmore=" + SECRET,
        b"X-Api-Key: " + SECRET,
    ],
)
def test_a_secret_in_a_request_is_not_written(
    archive: MakeArchive, capture: MakeCapture, directory: Path, line: bytes
) -> None:
    """The name of the header stays, and so does every other line."""
    head = b"GET / HTTP/1.1\r\nHost: a\r\n" + line + b"\r\nX-Other: kept\r\n\r\n"
    kept = archive(settings=ArchiveSettings(redact_headers=("X-Api-Key", "X-")))
    (pointer,) = store(kept, [capture(request_head=head)])
    name = line.partition(b":")[0].rstrip()
    found = kept.open(pointer)
    assert found.request_head == b"GET / HTTP/1.1\r\nHost: a\r\n" + name + b": [redacted]\r\nX-Other: kept\r\n\r\n"
    assert faults_found_by_warcio(directory) == 0


@pytest.mark.parametrize(("redact", "value"), [(False, SECRET), (True, b"[redacted]")])
def test_set_cookie_is_kept_unless_the_setting_says_otherwise(
    archive: MakeArchive, capture: MakeCapture, redact: bool, value: bytes
) -> None:
    """Response heads are byte-exact by default, since replay needs them so."""
    head = b"HTTP/1.1 200 OK\r\nSet-Cookie: %b\r\nset-cookie: %b\r\nX: 1\r\n\r\n"
    kept = archive(settings=ArchiveSettings(redact_set_cookie=redact))
    (pointer,) = store(kept, [capture(response_head=head % (SECRET, SECRET), payload=b"Set-Cookie: " + SECRET)])
    found = kept.open(pointer)
    assert found.response_head == head % (value, value)
    assert found.payload == b"Set-Cookie: " + SECRET


def test_nothing_from_outside_can_add_a_field(archive: MakeArchive, capture: MakeCapture, directory: Path) -> None:
    """A line break in an address becomes a blank, which warcio shows as %20; what is no address is left out."""
    url = "http://a.test/\r\nWARC-Type: revisit\r\n\r\n\u00fc\ud800"
    store(archive(), [capture(url=url, address="1.2.3.4\r\nX: y")])
    (path,) = directory.iterdir()
    response = fields_of(path)[1]
    assert response["WARC-Type"] == "response"
    assert response["WARC-Target-URI"] == "http://a.test/%20WARC-Type:%20revisit%20\u00fc?"
    assert "WARC-IP-Address" not in response


def test_empty_lines_before_a_response_are_not_part_of_its_head(archive: MakeArchive, capture: MakeCapture) -> None:
    """They would be read as an empty head."""
    kept = archive()
    (pointer,) = store(kept, [capture(response_head=b"\r\n\nHTTP/1.1 200 OK\r\n\r\n")])
    assert kept.open(pointer) == capture(response_head=b"HTTP/1.1 200 OK\r\n\r\n")


@pytest.mark.parametrize("head", [b"", b"\r\n"])
def test_a_response_without_a_head_is_a_bug_of_the_caller(
    archive: MakeArchive, capture: MakeCapture, head: bytes
) -> None:
    """No status means that nothing was answered, and nothing is kept of that."""
    with pytest.raises(Bug, match="without a head"):
        store(archive(), [capture(response_head=head)])


@pytest.mark.parametrize("field", ["payload", "request_body"])
def test_what_could_not_be_read_back_is_not_written(archive: MakeArchive, capture: MakeCapture, field: str) -> None:
    """The limits of fetching and keeping contradict each other: said at once, with the setting's name."""
    kept = archive(settings=ArchiveSettings(max_record=1 << 20))
    with pytest.raises(ConfigError, match=r"archive\.max_record"):
        store(kept, [capture(**{field: bytes(1 << 20)})])


def test_a_capture_counts_only_after_the_flush(archive: MakeArchive, capture: MakeCapture) -> None:
    """Neither a scan nor a pointer reaches what is not durable; the flushed length says how far they do."""
    kept = archive()

    async def run() -> None:
        first = await kept.append(capture())
        assert list(kept.scan()) == []
        assert dict(kept.flushed) == {first.file: 0}
        with pytest.raises(CrawlspaceError):
            kept.open(first)
        await kept.flush()
        assert kept.flushed[first.file] > first.offset + first.length
        assert kept.open(first) == capture()
        await kept.append(capture(payload=random.Random(2).randbytes(3 << 20)))
        assert list(kept.scan()) == [(first, capture())]
        await kept.close()
        assert len(list(kept.scan())) == 2

    asyncio.run(run())


def test_another_process_reads_a_growing_file_as_far_as_it_is_told(
    archive: MakeArchive, capture: MakeCapture, directory: Path
) -> None:
    """The rest may be half written."""
    kept = archive()
    (pointer,) = store(kept, [capture()])
    size = kept.flushed[pointer.file]
    with (directory / pointer.file).open("ab") as file:
        file.write(b"\x1f\x8b half")
    assert list(archive().scan({pointer.file: size})) == [(pointer, capture())]


class _CountingDisk(RealDisk):
    def __init__(self) -> None:
        self.made: list[Path] = []

    def create(self, path: Path):  # type: ignore[no-untyped-def]
        self.made.append(path)
        return super().create(path)


def test_a_flush_with_nothing_to_do_does_nothing(archive: MakeArchive, directory: Path) -> None:
    """No file is made before the first capture, and none is left by closing."""
    disk = _CountingDisk()
    kept = archive(disk)

    async def run() -> None:
        await kept.flush()
        await kept.close()
        await kept.close()

    asyncio.run(run())
    assert disk.made == []
    assert list(directory.iterdir()) == []


def test_after_closing_a_new_file_begins(archive: MakeArchive, capture: MakeCapture) -> None:
    """An archive may be used again, in another event loop too."""
    kept = archive()
    first = store(kept, [capture()])
    second = store(kept, [capture()])
    assert first[0].file != second[0].file
    assert [pointer for pointer, _ in kept.scan()] == first + second


def test_the_same_captures_give_the_same_bytes(capture: MakeCapture, tmp_path: Path) -> None:
    """Nothing in a file comes from chance or from the machine."""
    files = []
    for name in ("one", "two"):
        kept = WarcArchive(tmp_path / name, ArchiveSettings(), ManualClock(), crawl="x", software="y")
        (pointer,) = store(kept, [capture()])
        files.append((tmp_path / name / pointer.file).read_bytes())
    assert files[0] == files[1]


def test_a_directory_that_cannot_be_made_is_said_in_one_line(archive: MakeArchive, directory: Path) -> None:
    """Here a plain file stands in its way."""
    directory.write_text("")
    with pytest.raises(StoreError, match="cannot be used: File exists"):
        archive()


@pytest.mark.parametrize(
    "wrong",
    [{"level": 4}, {"max_file": 0}, {"max_age": 0}, {"unknown": 1}, {"redact_headers": ["a: b"]}, {"max_record": 10}],
)
def test_settings_refuse_what_makes_no_sense(wrong: dict[str, object]) -> None:
    """As every part's settings do."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, ArchiveSettings)


def test_appending_a_usual_page_is_cheap(archive: MakeArchive, capture: MakeCapture) -> None:
    """A guard against gross loss only: ten times the measured cost. `make bench` has the figure itself."""
    words = random.Random(3)
    page = b" ".join(words.choice([b"<p>", b"</p>", b"crawl", b"page", b"link", b"host"]) for _ in range(9000))
    kept = archive()

    async def run() -> float:
        started = time.process_time()
        for _ in range(100):
            await kept.append(capture(payload=page))
        spent = time.process_time() - started
        await kept.close()
        return spent / 100

    assert asyncio.run(run()) < 0.002
