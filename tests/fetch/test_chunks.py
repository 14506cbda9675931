"""Plain chunks are read here; llhttp, which reads all others, is the judge of what comes of them."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawlspace.fetch.chunks import PLAIN, Chunks, whole
from crawlspace.fetch.grammar import OddChunks

PARTS = [
    *(b"3\r\nabc\r\n", b"00a\r\n0123456789\r\n", b"1\r\n\r\r\n", b"2\r\n\r\n\r\n"),
    *(b"1;x=y\r\nz\r\n", b"1 \r\nz\r\n", b"1\nz\n", b"1\r\nzz\r\n", b"\r\n", b"0\r\n", b"g\r\n"),
    *(b"-1\r\n", b"0x1\r\na\r\n", b"00000001\r\na\r\n", b"0000000000000000000\r\n", b"fffffffff\r\n"),
]
ENDS = [b"0\r\n\r\n", b"000\r\n\r\n", b"0\r\nA: b\r\n\r\n", b"0\n\n", b"0\r\n\r", b"0\r\nx", b"00000000\r\n\r\n", b""]
bodies = st.tuples(
    st.lists(st.sampled_from(PARTS[:4]) | st.sampled_from(PARTS) | st.binary(max_size=3), max_size=6).map(b"".join),
    st.sampled_from(ENDS),
    st.sampled_from([b"", b"", b"3\r\nabc\r\n", b"HTTP/1.1 200 OK\r\n", b"\r\n"]),
).map(b"".join)


def read(chunks: Chunks | OddChunks, body: bytes, sizes: list[int]) -> tuple[bytes, str, bool, int]:
    """Content, what is wrong, whether it is complete, and how long it is."""
    content: list[bytes] = []
    problem, at = "", 0
    while at < len(body) and not problem and not chunks.complete:
        size = sizes.pop() if sizes else len(body)
        more, problem = chunks.feed(body[at : at + size])
        content += more
        at += size
    ended = chunks.complete or bool(problem)
    return b"".join(content), problem, chunks.complete, chunks.length(body[:at]) if ended else 0


@given(bodies, st.lists(st.integers(1, 9), max_size=40), st.booleans())
@example(b"1\r\na\n", [], True)
@example(b"\r", [], True)
@example(b"1\r\na\r\n\r", [], True)
@example(b"1\r\na\r\n" * (PLAIN + 1) + b"0\r\n\r\nx", [], True)
@example(b"1\r\na\r\n" * PLAIN + b"0\r\n\r\nx", [6 * PLAIN + 1], True)
def test_a_chunked_body_is_read_as_llhttp_reads_it(body: bytes, sizes: list[int], strict: bool) -> None:
    judged = read(OddChunks(strict, False), body, [])
    assert read(Chunks(strict), body, sizes) == judged
    assert read(Chunks(strict), body, [1] * len(body)) == judged


@given(bodies, st.booleans())
@example(b"1\r\na\r\n" * PLAIN + b"0\r\n\r\n", True)
@example(b"1\r\na\r\n0\r\n\r\n0\r\n\r\n", True)
@example(b"9\r\na\r\n0\r\n\r\n", True)
def test_a_body_that_is_read_at_once_is_read_as_llhttp_reads_it(body: bytes, strict: bool) -> None:
    content = whole(body)
    if content is not None:
        assert read(OddChunks(strict, False), body, []) == (content, "", True, len(body))


def test_what_servers_send_is_read_at_once() -> None:
    """Else reading at once would be no gain, and nobody would notice."""
    assert whole(b"3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n") == b"abc0123456789"


@pytest.mark.parametrize("number", [1, PLAIN, PLAIN + 1, 3 * PLAIN])
def test_chunks_are_counted_whoever_reads_them(number: int) -> None:
    chunks = Chunks(strict=True)
    content, _ = chunks.feed(b"1\r\na\r\n" * number + b"0\r\n\r\n")
    assert (chunks.count, len(content), chunks.complete) == (number, number, True)
