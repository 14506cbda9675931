"""The contract of `ports.Captures`: where bytes lie that come again, and files that were joined."""

from __future__ import annotations

from hashlib import sha256
from typing import cast

from crawlspace.ports import Captures
from crawlspace.testing.frontier_contract_words import (
    T0,
    FrontierSuite,
    Store,
    address,
    died,
    finished,
    link,
    links,
    one_lease,
    released,
)
from crawlspace.types import Evidence, Joined, Pointer, Settlement

WHOLE = "crawl-1-joined-0.warc.gz"


def _seen(file: str, offset: int, body: bytes, status: int = 200) -> Evidence:
    pointer = Pointer(file, offset, 10)
    return Evidence(at=T0, status=status, digest=sha256(body).digest(), size=10, pointer=pointer, mime="text/html")


async def _pointer(store: Store, name: str) -> Pointer | None:
    [story] = await store.find([address(name).key])
    assert story is not None
    assert story.evidence is not None
    return story.evidence.pointer


def _captures(store: Store) -> Captures:
    return cast(Captures, store)


class CapturesContract(FrontierSuite):
    """Inherit it beside `FrontierContract`."""

    def test_bytes_are_found_where_the_first_settled_page_has_them(self) -> None:
        """Others of the same bytes change nothing; what did not end done gives nothing."""

        async def story(store: Store) -> None:
            await store.claim(links(4), T0)
            lease = await one_lease(store)
            captures = _captures(store)
            one, two, gone = (sha256(body).digest() for body in (b"one", b"two", b"gone"))
            assert await captures.originals([one]) == [None]
            first, second, third, fourth = lease.urls
            ends: list[Settlement] = [
                finished(lease, first, _seen("a.warc.gz", 0, b"one")),
                finished(lease, second, _seen("a.warc.gz", 10, b"two")),
                finished(lease, third, _seen("a.warc.gz", 20, b"one")),
                died(lease, fourth),
            ]
            await store.settle(ends, [], T0)
            found = await captures.originals([two, gone, one, two])
            assert found == [Pointer("a.warc.gz", 10, 10), None, Pointer("a.warc.gz", 0, 10), found[0]]
            assert await captures.originals([]) == []

        self.play(story)

    def test_pointers_into_files_that_were_joined_move_and_others_stay(self) -> None:
        async def story(store: Store) -> None:
            await store.claim([*links(3), link("other")], T0)
            lease = await one_lease(store)
            places = [("a.warc.gz", 5), ("b.warc.gz", 0), ("a.warc.gz", 900), ("c.warc.gz", 7)]
            ends = [
                finished(lease, url, _seen(file, offset, url.url.encode()))
                for url, (file, offset) in zip(lease.urls, places, strict=True)
            ]
            await store.settle([*ends, released(lease)], [], T0)
            whole = Joined(WHOLE, 2000, (("a.warc.gz", 0), ("nobody-knows.warc.gz", 1000), ("b.warc.gz", 1500)))
            for _ in range(2):
                await _captures(store).relocate([whole, Joined("none.warc.gz", 5, (("x.warc.gz", 0),))])
                assert [await _pointer(store, name) for name in ("0", "1", "2", "other")] == [
                    Pointer(WHOLE, 5, 10),
                    Pointer(WHOLE, 1500, 10),
                    Pointer(WHOLE, 900, 10),
                    Pointer("c.warc.gz", 7, 10),
                ]
            assert await store.segments() == {WHOLE: 2000, "c.warc.gz": 17}  # type: ignore[attr-defined]

        self.play(story)

    def test_a_joined_file_may_be_joined_again(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(1), T0)
            lease = await one_lease(store)
            await store.settle([finished(lease, lease.urls[0], _seen("a.warc.gz", 5, b"x"))], [], T0)
            await _captures(store).relocate([Joined("b.warc.gz", 100, (("a.warc.gz", 50),))])
            await _captures(store).relocate([Joined("c.warc.gz", 300, (("b.warc.gz", 200),))])
            assert await _pointer(store, "0") == Pointer("c.warc.gz", 255, 10)
            assert await _captures(store).originals([sha256(b"x").digest()]) == [Pointer("c.warc.gz", 255, 10)]

        self.play(story)
