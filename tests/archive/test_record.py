"""One WARC record as bytes, and back."""

from __future__ import annotations

from base64 import b32encode
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.archive.record import BrokenRecord, Record, base32, date_of, date_text, decode, encode, sha1_name

RECORD = b"WARC/1.1\r\nWARC-Type: response\r\nX: a\r\n  b\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n"


def test_a_record_is_read() -> None:
    """Names without case, folded lines joined."""
    record = decode(RECORD)
    assert record == Record({"warc-type": "response", "x": "a b", "content-length": "3"}, b"abc")
    assert record.kind == "response"
    assert Record({}, b"").kind == ""


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"WARC/1.1", b"WARC/2.0", "version"),
        (b"WARC/1.1", b"HTTP/1.1", "version"),
        (b"Length: 3", b"Length: 2", "not the 2 bytes"),
        (b"Length: 3", b"Length: 4", "not the 4 bytes"),
        (b"Length: 3", b"Length: 999999999999999999", "not the"),
        (b"Length: 3", b"Length: 9999999999999999999999", "Content-Length"),
        (b"Length: 3", b"Length: -3", "Content-Length"),
        (b"Length: 3", b"Length: +3", "Content-Length"),
        (b"Length: 3", b"Length: \xd9\xa3", "Content-Length"),
        (b"Length: 3", b"Length:", "Content-Length"),
        (b"Content-Length: 3\r\n", b"", "Content-Length"),
        (b"X: a", b"X a", "no field"),
        (b"X: a", b": a", "no field"),
        (b"abc\r\n\r\n", b"abc\r\n", "not the 3 bytes"),
        (b"abc\r\n\r\n", b"abc\r\n\r\nabc", "not the 3 bytes"),
        (b"X: a", b"X: " + b"a" * 70_000, "do not end"),
        (b"X: a\r\n  b", b"WARC-Block-Digest: sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE4", "another digest"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(old: bytes, new: bytes, why: str) -> None:
    """Nothing of it is taken on trust."""
    assert old in RECORD
    with pytest.raises(BrokenRecord, match=why):
        decode(RECORD.replace(old, new))


@given(st.binary(min_size=20, max_size=20))
def test_digests_are_in_base_32_as_everybody_writes_it(digest: bytes) -> None:
    """The same as the standard library's, which takes three times as long."""
    assert base32([digest]) == [b32encode(digest).decode()]
    several = [digest, bytes(20), digest[::-1], b"\xff" * 20, digest]
    assert base32(several) == [b32encode(each).decode() for each in several]


@pytest.mark.parametrize("digest", ["sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5", "sha1:a9993e36", "sha256:x", "?"])
def test_a_digest_is_checked_when_it_is_of_the_kind_we_write(digest: str) -> None:
    """The SHA-1 of `abc` (FIPS 180-4) passes; others are not judged."""
    assert sha1_name(b"abc") == "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5"
    assert decode(RECORD.replace(b"X: a\r\n  b", b"WARC-Block-Digest: " + digest.encode())).block == b"abc"


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        (951_782_400_999, "2000-02-29T00:00:00.999Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_a_date_has_milliseconds(at: int, text: str) -> None:
    """And comes back to the millisecond."""
    assert date_text(at) == text
    assert date_of(Record({"warc-date": text}, b"")) == at


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T22:13:20.123456789Z", 1_700_000_000_123),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000_000),
    ],
)
def test_dates_of_others_are_read(text: str, at: int) -> None:
    """Seconds as in WARC 1.0, finer fractions, and zones that should not be there."""
    assert date_of(Record({"warc-date": text}, b"")) == at


@pytest.mark.parametrize("text", ["", "yesterday", "2023-11-14T22:13:20", "2023-13-14T22:13:20Z", "20231114" * 99])
def test_what_is_no_date_is_said(text: str) -> None:
    """Without a zone it is none either."""
    with pytest.raises(BrokenRecord, match="date"):
        date_of(Record({"warc-date": text}, b""))


@given(st.text(max_size=60), st.binary(max_size=60))
def test_what_is_encoded_is_one_record_with_that_block(value: str, block: bytes) -> None:
    """Whatever a value holds, it adds no field and moves no border."""
    record = decode(encode([("WARC-Type", "resource"), ("X", value)], block))
    assert set(record.fields) == {"warc-type", "x", "content-length"}
    assert record.block == block


@given(st.binary(max_size=200), st.integers(0, len(RECORD)))
def test_arbitrary_bytes_are_a_record_or_refused(noise: bytes, at: int) -> None:
    """Nothing else is ever raised."""
    for data in (noise, RECORD[:at] + noise, RECORD[:at] + noise + RECORD[at:]):
        with suppress(BrokenRecord):
            assert decode(data).block in data
