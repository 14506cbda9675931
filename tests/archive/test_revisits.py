"""A payload that is there already is not kept twice, and whoever reads it gets it all the same."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from crawlspace.archive.captures import FACTS_TYPE
from crawlspace.archive.cdxj import Indexer
from crawlspace.archive.disk import RealDisk
from crawlspace.archive.exchanges import Exchanges
from crawlspace.archive.members import deflate
from crawlspace.archive.reader import Reader
from crawlspace.archive.record import encode
from crawlspace.archive.warc import ArchiveSettings, WarcArchive
from crawlspace.errors import StoreDamaged
from crawlspace.exchange import Capture, Facts, Outlink, Reference, Truncated
from crawlspace.types import Pointer

MakeCapture = Callable[..., Capture]
MakeArchive = Callable[..., WarcArchive]

PAYLOAD = random.Random(5).randbytes(2000).hex().encode()
FORMATS = [ArchiveSettings(), ArchiveSettings(compression="zstd")]


def store(archive: WarcArchive, captures: Sequence[Capture]) -> list[Pointer]:
    """Each in a group of its own, as if all before were settled."""

    async def run() -> list[Pointer]:
        pointers = []
        for each in captures:
            pointers.append(await archive.append(each))
            await archive.flush()
        await archive.close()
        return pointers

    return asyncio.run(run())


def again(capture: Capture, pointer: Pointer, **fields: object) -> Capture:
    """A later capture of the same bytes, which the store says lie at `pointer`."""
    at = capture.at + 5000
    later = replace(capture, url="http://mirror.test/x", at=at, refers_to=Reference("", 0, pointer))
    return replace(later, **fields)  # type: ignore[arg-type]


@pytest.fixture
def pair(archive: MakeArchive, capture: MakeCapture) -> tuple[Capture, Capture, list[Pointer]]:
    """A capture, one of the same payload, and where both lie."""
    first = capture(payload=PAYLOAD)
    (pointer,) = store(archive(), [first])
    second = again(first, pointer)
    return first, second, [pointer, *store(archive(), [second])]


def records(directory: Path) -> list[dict[str, str]]:
    found = []
    for path in sorted(directory.glob("*.warc.gz")):
        with path.open("rb") as file:
            found += [dict(record.rec_headers.headers) for record in ArchiveIterator(file)]
    return found


@pytest.mark.parametrize("settings", FORMATS, ids=["gzip", "zstd"])
def test_what_was_on_the_wire_comes_back(
    archive: MakeArchive, capture: MakeCapture, settings: ArchiveSettings
) -> None:
    first = capture(payload=PAYLOAD)
    (original,) = store(archive(settings=settings), [first])
    second = again(first, original)
    (pointer,) = store(archive(settings=settings), [second])
    found = archive().open(pointer)
    assert found == replace(second, refers_to=Reference(first.url, first.at, original._replace(length=0)))
    assert [each.payload for _, each in archive().scan()] == [PAYLOAD, PAYLOAD]
    assert pointer.length < original.length


def test_the_record_is_as_the_standard_wants_it(
    pair: tuple[Capture, Capture, list[Pointer]], directory: Path
) -> None:
    first, _, (original, _) = pair
    response, revisit = (each for each in records(directory) if each["WARC-Type"] in ("response", "revisit"))
    assert revisit["WARC-Type"] == "revisit"
    assert revisit["WARC-Profile"] == "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    assert revisit["WARC-Refers-To-Target-URI"] == first.url
    assert revisit["WARC-Refers-To-Date"] == response["WARC-Date"]
    assert revisit["WARC-Payload-Digest"] == response["WARC-Payload-Digest"]
    assert (revisit["WARC-Refers-To-Filename"], revisit["WARC-Refers-To-File-Offset"]) == (
        original.file,
        str(original.offset),
    )
    assert int(revisit["Content-Length"]) == len(first.response_head)
    assert {each["WARC-Type"] for each in records(directory)} == {"warcinfo", "response", "request", "revisit"}
    files = [str(path) for path in directory.iterdir()]
    assert Checker(SimpleNamespace(inputs=files, verbose=False)).process_all() == 0


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"payload": PAYLOAD + b"."}, "other bytes"),
        ({"payload": b""}, "no bytes"),
        ({"truncated": Truncated.LENGTH}, "not all bytes"),
        ({"refers_to": Reference("", 0, None)}, "no place"),
        ({"refers_to": Reference("", 0, Pointer("other.warc.gz", 0, 10))}, "a file that is not there"),
        ({"refers_to": Reference("", 0, Pointer("../x", 0, 10))}, "no name of a file"),
    ],
)
def test_what_cannot_be_taken_from_there_is_kept_whole(
    archive: MakeArchive, capture: MakeCapture, fields: dict[str, object], why: str
) -> None:
    """The store may be wrong, or know a file of another machine: nothing is lost by it."""
    first = capture(payload=PAYLOAD)
    (original,) = store(archive(), [first])
    second = again(first, original, **fields)
    (pointer,) = store(archive(), [second])
    assert archive().open(pointer) == replace(second, refers_to=None), why


def test_what_is_damaged_or_was_cut_is_not_referred_to(
    archive: MakeArchive, capture: MakeCapture, directory: Path
) -> None:
    cut = capture(payload=PAYLOAD, truncated=Truncated.DISCONNECT)
    first = capture(payload=PAYLOAD)
    pointers = store(archive(), [cut, first])
    data = bytearray((directory / pointers[1].file).read_bytes())
    data[pointers[1].offset + pointers[1].length - 12] ^= 1
    (directory / pointers[1].file).write_bytes(data)
    for pointer in pointers:
        (found,) = store(archive(), [again(first, pointer)])
        assert archive().open(found) == again(first, pointer, refers_to=None)


def test_a_revisit_refers_to_the_capture_that_has_the_bytes_and_never_to_another_revisit(
    archive: MakeArchive, pair: tuple[Capture, Capture, list[Pointer]]
) -> None:
    first, _, (original, revisit) = pair
    (third,) = store(archive(), [again(first, revisit)])
    refers = archive().open(third).refers_to
    assert refers == Reference(first.url, first.at, original._replace(length=0))
    assert archive().open(third).payload == PAYLOAD


def test_the_setting_turns_it_off(archive: MakeArchive, capture: MakeCapture) -> None:
    first = capture(payload=PAYLOAD)
    (original,) = store(archive(), [first])
    (pointer,) = store(archive(settings=ArchiveSettings(revisits=False)), [again(first, original)])
    assert archive().open(pointer).refers_to is None


@pytest.mark.parametrize("revisits", [True, False])
def test_an_answer_that_nothing_changed_names_what_is_still_right(
    archive: MakeArchive, capture: MakeCapture, directory: Path, revisits: bool
) -> None:
    """304: the archive keeps the head, and the reference even where copies are kept whole."""
    first = capture(payload=PAYLOAD)
    (original,) = store(archive(), [first])
    head = b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"
    answer = again(first, original, url=first.url, status=304, response_head=head, payload=b"")
    (pointer,) = store(archive(settings=ArchiveSettings(revisits=revisits)), [answer])
    found = archive().open(pointer)
    assert (found.status, found.payload, found.response_head) == (304, b"", head)
    assert found.refers_to == Reference(first.url, first.at, original._replace(length=0))
    (record,) = (each for each in records(directory) if each["WARC-Type"] == "revisit")
    assert record["WARC-Profile"] == "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
    assert "WARC-Payload-Digest" not in record
    files = [str(path) for path in directory.iterdir()]
    assert Checker(SimpleNamespace(inputs=files, verbose=False)).process_all() == 0


def test_a_304_refers_to_its_own_page_and_not_to_another_of_the_same_bytes(
    archive: MakeArchive, capture: MakeCapture
) -> None:
    (mirror,) = store(archive(), [capture(url="http://mirror.test/", payload=PAYLOAD)])
    head = b"HTTP/1.1 304 Not Modified\r\n\r\n"
    wanted = Reference("http://a.test/", 5000, mirror)
    (pointer,) = store(archive(), [capture(status=304, response_head=head, payload=b"", refers_to=wanted)])
    found = archive().open(pointer).refers_to
    assert found is not None
    assert found == Reference("http://a.test/", 5000)


def test_a_304_to_what_is_not_known_here_keeps_its_name(archive: MakeArchive, capture: MakeCapture) -> None:
    head = b"HTTP/1.1 304 Not Modified\r\n\r\n"
    answer = capture(status=304, response_head=head, payload=b"", refers_to=Reference("http://a.test/", 5000))
    (pointer,) = store(archive(), [answer])
    assert archive().open(pointer).refers_to == Reference("http://a.test/", 5000)


@pytest.mark.parametrize("damage", ["gone", "other payload", "not a response"])
def test_a_lost_original_is_told_where_the_revisit_is_read(
    archive: MakeArchive, pair: tuple[Capture, Capture, list[Pointer]], directory: Path, damage: str
) -> None:
    _, _, (original, pointer) = pair
    path = directory / original.file
    head = path.read_bytes()[: original.offset]
    kind = "response" if damage == "other payload" else "resource"
    fields = [("WARC-Type", kind), ("WARC-Target-URI", "http://x/"), ("WARC-Date", "2024-01-01T00:00:00Z")]
    path.write_bytes(head + deflate(encode(fields, b"HTTP/1.1 200 OK\r\n\r\nother"), 1))
    if damage == "gone":
        path.unlink()
    with pytest.raises(StoreDamaged, match=r"to which it refers|refers to a place"):
        archive().open(pointer)


def test_whoever_copies_a_revisit_gets_a_whole_response(
    archive: MakeArchive, pair: tuple[Capture, Capture, list[Pointer]], directory: Path, tmp_path: Path
) -> None:
    """The copy needs no other capture; records that are whole are copied byte for byte."""
    _, second, (original, pointer) = pair
    exchanges = Exchanges(RealDisk(), directory, 1 << 20)
    assert exchanges.at(original).raw == (directory / original.file).read_bytes()[original.offset :]
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "c.warc.gz").write_bytes(exchanges.head(pointer.file) + exchanges.at(pointer).raw)
    ((_, found),) = Reader(RealDisk(), copy, 1 << 20).scan({"c.warc.gz": (copy / "c.warc.gz").stat().st_size})
    assert found == replace(second, refers_to=None)
    assert Checker(SimpleNamespace(inputs=[str(copy / "c.warc.gz")], verbose=False)).process_all() == 0
    shutil.rmtree(copy)


def test_exchanges_of_zstandard_files_are_copied_as_gzip(
    archive: MakeArchive, capture: MakeCapture, directory: Path
) -> None:
    settings = ArchiveSettings(compression="zstd")
    first = capture(payload=PAYLOAD, facts=Facts(id=7))
    (pointer,) = store(archive(settings=settings), [first])
    exchanges = Exchanges(RealDisk(), directory, 1 << 20)
    copy = directory / "copy.warc.gz"
    copy.write_bytes(exchanges.head(pointer.file) + exchanges.at(pointer).raw)
    assert [each["WARC-Type"] for each in records(directory)] == ["warcinfo", "response", "request", "metadata"]
    assert Checker(SimpleNamespace(inputs=[str(copy)], verbose=False)).process_all() == 0
    assert [found.payload for _, found in archive().scan()] == [PAYLOAD, PAYLOAD]


def test_an_index_knows_revisits_as_others_do(pair: tuple[Capture, Capture, list[Pointer]], directory: Path) -> None:
    _, second, (original, pointer) = pair
    indexer = Indexer(RealDisk(), directory, 1 << 20, pytest.fail)
    lines = [
        json.loads(line.split(b" ", 2)[2]) for name in (original.file, pointer.file) for line in indexer.lines(name)
    ]
    assert lines[1]["mime"] == "warc/revisit"
    assert lines[1]["url"] == second.url
    assert lines[0]["digest"] == lines[1]["digest"]


FACTS = Facts(
    id=7,
    canonical="http://a.test/",
    host="a.test",
    parent=3,
    depth=2,
    outcome="done",
    detected="text/html",
    charset="utf-8",
    body_digest="ab" * 32,
    title='"\u2028</script>\x00',
    base="http://a.test/",
    links=(Outlink("../b?c=d", "hyperlink", "text \N{SNOWMAN}", True), Outlink("/x", "requisite")),
)


@pytest.mark.parametrize("settings", FORMATS, ids=["gzip", "zstd"])
def test_what_was_made_of_a_response_lies_beside_it(
    archive: MakeArchive, capture: MakeCapture, directory: Path, settings: ArchiveSettings
) -> None:
    first, bare = capture(facts=FACTS), capture(url="http://b.test/")
    pointers = store(archive(settings=settings), [first, bare, first])
    reader = Reader(RealDisk(), directory, 1 << 20)
    assert [reader.facts(pointer) for pointer in pointers] == [FACTS, None, FACTS]
    assert archive().open(pointers[0]) == replace(first, facts=None)
    assert len(list(archive().scan())) == 3


def test_the_record_of_facts_is_one_that_others_can_read(
    archive: MakeArchive, capture: MakeCapture, directory: Path
) -> None:
    store(archive(), [capture(facts=FACTS)])
    _, response, request, metadata = records(directory)
    assert (metadata["WARC-Type"], metadata["Content-Type"]) == ("metadata", FACTS_TYPE)
    assert metadata["WARC-Concurrent-To"] == response["WARC-Record-ID"] == request["WARC-Concurrent-To"]
    assert metadata["WARC-Target-URI"] == response["WARC-Target-URI"]
    (path,) = directory.iterdir()
    with path.open("rb") as file:
        block = [record.content_stream().read() for record in ArchiveIterator(file)][-1]
    told = json.loads(block)
    assert told["links"][0] == ["../b?c=d", "hyperlink", "text \N{SNOWMAN}", True]
    assert Checker(SimpleNamespace(inputs=[str(path)], verbose=False)).process_all() == 0


def test_the_setting_leaves_facts_out(archive: MakeArchive, capture: MakeCapture, directory: Path) -> None:
    store(archive(settings=ArchiveSettings(metadata=False)), [capture(facts=FACTS)])
    assert [each["WARC-Type"] for each in records(directory)] == ["warcinfo", "response", "request"]


@pytest.mark.parametrize("block", [b"", b"{", b"[]", b'{"id": "x"}', b"\xff", b"[" * 100_000])
def test_facts_that_cannot_be_read_are_none(
    archive: MakeArchive, capture: MakeCapture, directory: Path, block: bytes
) -> None:
    (pointer,) = store(archive(), [capture()])
    path = directory / pointer.file
    response = records(directory)[1]
    fields = [
        ("WARC-Type", "metadata"),
        ("WARC-Concurrent-To", response["WARC-Record-ID"]),
        ("Content-Type", FACTS_TYPE),
    ]
    path.write_bytes(path.read_bytes() + deflate(encode(fields, block), 1))
    reader = Reader(RealDisk(), directory, 1 << 20)
    assert reader.stored(pointer).metadata is not None
    assert reader.facts(pointer) is None
