"""Content codings: public bodies, bombs, wrong labels, broken streams, in any division."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import zlib
from pathlib import Path

import pytest
import zstandard
from _brotli import Compressor as BrotliCompressor
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.fetch.body import Decoder, codings
from crawlspace.fetch.codings import MAX_MEMBERS
from crawlspace.fetch.limits import MIB, FetchSettings

BODIES = Path(__file__).resolve().parents[1] / "data" / "encoding-http" / "bodies"
LIMITS = FetchSettings()
ROWS = json.loads((BODIES / "index.json").read_text())
HONEST = [row for row in ROWS if "expect" not in row and len(row["decode_chain"]) < 3]
BOMBS = [row for row in ROWS if row.get("ratio", 0) > 100]
DAMAGED = [row for row in ROWS if row.get("ended_cleanly") is False]


def bare_deflate(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-15)
    return engine.compress(data) + engine.flush()


def brotli_compress(data: bytes) -> bytes:
    engine = BrotliCompressor(quality=5)
    return bytes(engine.process(data) + engine.finish())


CODERS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli_compress,
    "zstd": zstandard.ZstdCompressor().compress,
}
TEXT = " ".join(str(number * number) for number in range(4000)).encode()


def decode(coded: bytes, label: str, sizes: list[int] | None = None, limits: FetchSettings = LIMITS) -> Decoder:
    decoder = Decoder(codings([word.strip() for word in label.split(",")]), limits)
    at = 0
    for size in [*(sizes or []), len(coded)]:
        if at < len(coded) and not decoder.feed(coded[at : at + size]):
            break
        at += size
    decoder.end()
    return decoder


def named(row: dict[str, object]) -> str:
    return str(row["file"])


@pytest.mark.parametrize("row", HONEST, ids=named)
@pytest.mark.parametrize("size", [1, 7, 1000, 100_000])
def test_public_bodies_are_decoded_in_any_division(row: dict[str, object], size: int) -> None:
    coded = (BODIES / str(row["file"])).read_bytes()
    decoder = decode(coded, str(row["content_encoding"]), [size] * (len(coded) // size))
    assert (decoder.problem, decoder.note, decoder.capped) == ("", "", False)
    assert hashlib.sha256(decoder.body).hexdigest() == row["decoded_sha256"]


@pytest.mark.parametrize("row", BOMBS, ids=named)
def test_a_bomb_is_cut_and_costs_no_more_than_its_cap(row: dict[str, object]) -> None:
    coded = (BODIES / str(row["file"])).read_bytes()
    for limits, most in (
        (FetchSettings(max_body=5000), 5000),
        (FetchSettings(max_body=MIB), MIB),
        (LIMITS, 10 * MIB),
    ):
        decoder = decode(coded, str(row["content_encoding"]), limits=limits)
        assert decoder.capped
        assert not decoder.problem
        assert len(decoder.body) <= most


@pytest.mark.parametrize("row", DAMAGED, ids=named)
@pytest.mark.parametrize("size", [1, 100, 100_000])
def test_what_a_damaged_stream_gives_is_kept(row: dict[str, object], size: int) -> None:
    coded = (BODIES / str(row["file"])).read_bytes()
    decoder = decode(coded, "gzip", [size] * (len(coded) // size))
    assert decoder.problem
    assert decoder.broken_off
    assert len(decoder.body) == row["decoded_bytes"]
    assert hashlib.sha256(decoder.body).hexdigest() == row["decoded_sha256"]


@given(st.sampled_from([*CODERS]), st.binary(max_size=3000), st.lists(st.integers(1, 500), max_size=40))
def test_what_was_coded_comes_back(coding: str, content: bytes, sizes: list[int]) -> None:
    decoder = decode(CODERS[coding](content), coding, sizes)
    assert (decoder.body, decoder.problem, decoder.note) == (content, "", "")


@pytest.mark.parametrize("inner", [*CODERS])
@pytest.mark.parametrize("outer", [*CODERS])
def test_two_codings_on_top_of_each_other_are_undone(inner: str, outer: str) -> None:
    decoder = decode(CODERS[outer](CODERS[inner](TEXT)), f"{inner}, {outer}", [100, 1, 1, 1])
    assert (decoder.body, decoder.problem) == (TEXT, "")


@pytest.mark.parametrize("coding", [*CODERS])
@pytest.mark.parametrize("size", [1, 3, 5000, 1_000_000])
def test_junk_behind_a_stream_is_dropped(coding: str, size: int) -> None:
    coded = CODERS[coding](TEXT) + b"\x00\x01junk"
    decoder = decode(coded, coding, [size] * (len(coded) // size))
    assert (decoder.body, decoder.problem) == (TEXT, "")
    assert "junk" in decoder.note or coding == "br" or size < 5000


@pytest.mark.parametrize("coding", [*CODERS])
@pytest.mark.parametrize("size", [1, 3, 5000])
@pytest.mark.parametrize("content", [b"<html>plain</html>" * 300, b"o", b"ok"])
def test_a_plain_body_with_a_label_passes_as_it_is(coding: str, size: int, content: bytes) -> None:
    decoder = decode(content, coding, [size] * (len(content) // size))
    assert decoder.body == content or (coding == "br" and len(content) < 3)
    assert decoder.problem == "" or len(content) < 3
    assert decoder.note or len(content) < 3


def flushed(coding: str, content: bytes) -> bytes:
    """A stream that has given all of its content and is not at its end."""
    match coding:
        case "br":
            brotli = BrotliCompressor(quality=5)
            return bytes(brotli.process(content) + brotli.flush())
        case "zstd":
            zstd = zstandard.ZstdCompressor().compressobj()
            return zstd.compress(content) + zstd.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        case _:
            deflate = zlib.compressobj(wbits=31 if coding == "gzip" else 15)
            return deflate.compress(content) + deflate.flush(zlib.Z_SYNC_FLUSH)


BREAKS = {"gzip": b"\x06", "deflate": b"\x06", "br": b"\x0e", "zstd": b"\x06\x00\x00"}
"""The beginning of a block of the kind that each format reserves."""


@pytest.mark.parametrize("size", [1, 400, 100_000])
@pytest.mark.parametrize("coding", [*CODERS])
def test_all_that_came_before_a_break_is_kept(coding: str, size: int) -> None:
    coded = flushed(coding, TEXT) + BREAKS[coding] + b"\x06" * 50
    decoder = decode(coded, coding, [size] * (len(coded) // size))
    assert decoder.problem
    assert decoder.broken_off
    kept = len(TEXT) if coding != "zstd" else len(TEXT) - 128 * 1024
    assert len(decoder.body) >= kept
    assert TEXT.startswith(decoder.body)


def test_a_wrong_checksum_keeps_the_whole_body() -> None:
    coded = bytearray(gzip.compress(TEXT))
    coded[-8] ^= 1
    decoder = decode(bytes(coded), "gzip")
    assert decoder.body == TEXT
    assert decoder.problem


def test_deflate_may_be_zlib_or_bare_and_may_look_like_the_other() -> None:
    assert decode(bare_deflate(TEXT), "deflate").body == TEXT
    assert decode(bare_deflate(TEXT), "deflate", [1] * 100).body == TEXT
    stored = b"\x78\x9c\x00\x63\xff" + TEXT[:156] + b"\x03\x00"
    for sizes in ([], [1] * 10):
        assert decode(stored, "deflate", sizes).body == TEXT[:156]


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
@pytest.mark.parametrize("size", [1, 2, 3, 10_000])
def test_members_in_a_row_are_one_body(coding: str, size: int) -> None:
    coded = CODERS[coding](b"one,") + CODERS[coding](b"") + CODERS[coding](b"two")
    decoder = decode(coded, coding, [size] * len(coded))
    assert (decoder.body, decoder.problem, decoder.note) == (b"one,two", "", "")


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_members_are_counted(coding: str) -> None:
    decoder = decode(CODERS[coding](b"x") * (MAX_MEMBERS + 5), coding)
    assert len(decoder.body) == MAX_MEMBERS
    assert decoder.note


def test_a_skippable_frame_gives_nothing() -> None:
    frame = b"\x53\x2a\x4d\x18\x04\x00\x00\x00junk"
    decoder = decode(frame + CODERS["zstd"](b"x") + frame, "zstd")
    assert (decoder.body, decoder.problem) == (b"x", "")


def test_a_window_that_is_too_large_is_refused() -> None:
    params = zstandard.ZstdCompressionParameters(window_log=27)
    engine = zstandard.ZstdCompressor(compression_params=params).compressobj()
    coded = engine.compress(random.Random(1).randbytes(9 * MIB)) + engine.flush()
    assert "memory" in decode(coded[:5000], "zstd").problem.lower() or decode(coded[:5000], "zstd").problem


def test_a_stage_that_gives_nothing_is_capped_by_what_feeds_it() -> None:
    hollow = b"\x1f\x8b\x08\x10\x00\x00\x00\x00\x00\x03" + b"x" * (3 * MIB)
    decoder = decode(gzip.compress(hollow), "gzip, gzip", limits=FetchSettings(max_body=2 * MIB))
    assert decoder.capped
    assert decoder.body == b""


@pytest.mark.parametrize(("size", "capped"), [(MIB, False), (MIB + 70_000, True)])
def test_the_ratio_counts_from_one_mebibyte_on(size: int, capped: bool) -> None:
    assert decode(gzip.compress(bytes(size)), "gzip").capped is capped


@pytest.mark.parametrize(("size", "capped"), [(1000, False), (1001, True)])
@pytest.mark.parametrize("coding", [*CODERS])
def test_a_body_of_exactly_the_cap_is_whole(coding: str, size: int, capped: bool) -> None:
    decoder = decode(CODERS[coding](b"x" * size), coding, limits=FetchSettings(max_body=1000))
    assert (decoder.capped, len(decoder.body)) == (capped, 1000)


def test_more_than_two_codings_are_not_undone() -> None:
    coded = (BODIES / "html-gzip-deflate-gzip.bin").read_bytes()
    decoder = decode(coded, "gzip, deflate, gzip")
    assert decoder.body == coded
    assert "3 content codings" in decoder.problem


def test_an_unknown_coding_is_named() -> None:
    decoder = decode(b"abc", "x-snappy")
    assert (decoder.body, decoder.broken_off) == (b"abc", False)
    assert "x-snappy" in decoder.problem


def test_identity_is_no_coding_and_old_names_are_known() -> None:
    assert codings(["identity", "x-gzip", "br"]) == ("gzip", "br")
