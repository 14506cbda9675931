"""What every content index must do: inherit the suite beside the frontier's and run it with pytest.

Pages are finished with fingerprints of made-up texts; what the index makes of them is compared with what a person
would say.
"""

from __future__ import annotations

import hashlib
from typing import Protocol, cast

import pytest
from msgspec.structs import replace

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.policy.traps import TrapSettings
from crawlspace.ports import ContentIndex, Control
from crawlspace.states import UrlState
from crawlspace.testing import frontier_contract_words as words
from crawlspace.testing.frontier_contract_words import (
    T0,
    FrontierSuite,
    address,
    finished,
    link,
    links,
    one_lease,
    released,
    seen,
)
from crawlspace.types import (
    Answer,
    Claim,
    Copied,
    Evidence,
    Fingerprints,
    Lease,
    PageContent,
    Probe,
    QueuedUrl,
    Reason,
    Relation,
    Verdict,
    host_id,
)

LONG = 1_000
"""Characters of a text that says enough."""


class Store(words.Store, ContentIndex, Control, Protocol):
    """A frontier with its content index."""


def prints(text: str, links: str = "", **fields: object) -> Fingerprints:
    """Fingerprints of a text and its links; texts that begin with one word are near each other."""
    near = int.from_bytes(hashlib.sha256(text.split()[0].encode()).digest()[:8], "big")
    made = Fingerprints(
        text=hashlib.sha256(text.encode()).digest(),
        follow=hashlib.sha256(f"{text}\n{links}".encode()).digest(),
        length=LONG,
        novelty=int.from_bytes(hashlib.sha256(text.encode()).digest()[8:16], "big"),
        simhash=near ^ len(text.split()) - 1,
        kin=7,
        shape="/{n}",
    )
    return replace(made, **fields)


def page(fingerprints: Fingerprints | None, body: bytes | None = None) -> Evidence:
    """The evidence of a page that is known by these."""
    return replace(seen(body=body), fingerprints=fingerprints)


async def content(store: Store, name: str, host: str = "a.test") -> PageContent:
    """What the index has of one page."""
    [story] = await store.find([address(name, host).key])
    assert story is not None
    [found] = await store.contents([story.id])
    assert found is not None
    return found


async def lease_of(store: Store, host: str = "a.test") -> Lease:
    """A lease of this host."""
    [lease] = [lease for lease in await store.lease(words.wish(), T0) if lease.host.name == host]
    return lease


async def visit(store: Store, *pages: Fingerprints | None, found: tuple[Claim, ...] = ()) -> list[QueuedUrl]:
    """Claim as many new URLs of one host, and finish each with its fingerprints in one call; gives them."""
    counts = await store.counts()
    await store.claim([link(str(counts.known + place)) for place in range(len(pages))], T0)
    lease = await one_lease(store)
    told = [finished(lease, url, page(prints)) for url, prints in zip(lease.urls, pages, strict=True)]
    answers = await store.settle([*told, released(lease)], found, T0)
    assert set(answers) == {Answer.SETTLED}
    return list(lease.urls)


class ContentContract(FrontierSuite):
    """The index of content."""

    def judge(self, story: object, **settings: object) -> None:
        """Run one test's coroutine on a fresh store."""
        self.play(cast(words.Story, story), FrontierSettings(**settings))  # type: ignore[arg-type]

    def test_the_first_with_a_text_is_the_first_and_the_others_are_its_copies(self) -> None:
        async def story(store: Store) -> None:
            one, two = await visit(store, prints("amber a b"), prints("amber a b"))
            [three] = await visit(store, prints("amber a b"))
            contents = await store.contents([one.id, two.id, three.id])
            assert [each and each.verdict for each in contents] == [Verdict.FIRST, Verdict.EXACT, Verdict.EXACT]
            assert [each and each.copy_of for each in contents] == [None, one.id, one.id]
            assert {each and each.group for each in contents} == {one.id}
            assert (await store.content_totals())["exact"] == 2

        self.judge(story)

    def test_texts_that_differ_in_few_bits_are_near_and_grouped(self) -> None:
        async def story(store: Store) -> None:
            one, two = await visit(store, prints("amber a b"), prints("amber a c d"))
            [three] = await visit(store, prints("amber x y z"))
            found = await store.contents([one.id, two.id, three.id])
            assert [each and each.verdict for each in found] == [Verdict.FIRST, Verdict.NEAR, Verdict.NEAR]
            assert found[1] is not None
            assert found[1].copy_of == one.id
            assert {each and each.group for each in found} == {one.id}
            assert (await store.content_totals())["near"] == 2
            assert [each.id for each in await store.groups()] == [one.id, two.id, three.id]
            assert [each.id for each in await store.groups((one.id, two.id), 1)] == [three.id]

        self.judge(story)

    @pytest.mark.parametrize(
        "other",
        [
            prints("amber a c", kin=8),
            prints("amber a c", language="de"),
            prints("amber a c", simhash=None),
            prints("amber a c", length=10),
            prints("amber a c", simhash=prints("amber a b").simhash or 0 ^ 0xF0F0),
            prints("amber a b", language="de", kin=8),
        ],
        ids=["another price", "another language", "no SimHash", "too short", "too far", "one text, two languages"],
    )
    def test_what_may_not_be_merged_stays_apart(self, other: Fingerprints) -> None:
        if other.simhash is not None and other.kin == 7 and other.length == LONG and not other.language:
            other = replace(other, simhash=(prints("amber a b").simhash or 0) ^ 0xFF)

        async def story(store: Store) -> None:
            _, two = await visit(store, prints("amber a b"), other)
            [found] = await store.contents([two.id])
            assert found is not None
            assert found.verdict is (Verdict.SHORT if other.length < 256 else Verdict.FIRST)
            assert found.group is None

        self.judge(story)

    def test_the_distance_is_a_setting(self) -> None:
        far = replace(prints("amber a c"), simhash=(prints("amber a b").simhash or 0) ^ 0b11111)

        async def story(store: Store) -> None:
            _, two = await visit(store, prints("amber a b"), far)
            [found] = await store.contents([two.id])
            assert found is not None
            assert found.verdict is Verdict.NEAR

        self.judge(story, near_distance=5)

    def test_a_page_is_no_copy_of_its_own_earlier_visit(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(1), T0)
            lease = await one_lease(store)
            failed = words.died(lease, lease.urls[0])
            await store.settle([failed, released(lease)], [], T0)
            await store.revive([lease.urls[0].id], T0)
            lease = await one_lease(store)
            await store.settle([finished(lease, lease.urls[0], page(prints("amber a"))), released(lease)], [], T0)
            assert (await content(store, "0")).verdict is Verdict.FIRST

        self.judge(story)

    def test_a_late_settlement_leaves_no_trace(self) -> None:
        """Only what was settled is a page; the text is the next one's."""

        async def story(store: Store) -> None:
            await store.claim(links(1), T0)
            lease = await one_lease(store)
            await store.void_leases(T0)  # type: ignore[attr-defined]
            late = finished(lease, lease.urls[0], page(prints("amber a")))
            [answer] = await store.settle([late], [], T0)
            if answer is Answer.STALE:
                assert await store.contents([lease.urls[0].id]) == [None]
                assert (await store.content_totals())["exact"] == 0

        self.judge(story)

    def test_pages_without_text_count_and_have_no_content(self) -> None:
        async def story(store: Store) -> None:
            [one] = await visit(store, None)
            assert await store.contents([one.id]) == [None]
            [hour] = await store.yields()
            assert (hour.pages, hour.exact, hour.near, hour.new) == (1, 0, 0, 1)

        self.judge(story)

    # -- links that need not be followed --------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("fields", "depth", "stops"),
        [
            ({}, 0, True),
            ({"follow": b"x" * 32}, 0, False),
            ({"length": 255}, 0, False),
            ({"language": "de"}, 0, False),
            ({}, 3, True),
        ],
        ids=["same text and links", "other links", "short text", "other language", "deeper"],
    )
    def test_links_of_a_copy_are_not_followed(self, fields: dict[str, object], depth: int, stops: bool) -> None:
        async def story(store: Store) -> None:
            [one] = await visit(store, prints("amber a", "1 2"))
            copy = Copied(99, host_id(one.key), depth, prints("amber a", "1 2", **fields))
            assert await store.copies([copy]) == [one.id if stops else None]
            assert await store.copies([copy._replace(id=one.id)]) == [None]

        self.judge(story)

    @pytest.mark.parametrize("why", ["depth", "partial", "nearer"])
    def test_links_are_followed_when_those_of_the_first_were_not_all(self, why: str) -> None:
        async def story(store: Store) -> None:
            await store.claim([link("0", depth=5)], T0)
            lease = await one_lease(store)
            [url] = lease.urls
            refused = [link("far", depth=6, refusal=Reason.DEPTH, parent=url.id)] if why == "depth" else []
            told = finished(lease, url, page(prints("amber a", partial=why == "partial")))
            await store.settle([told, released(lease)], refused, T0)
            depth = 4 if why == "nearer" else 5
            assert await store.copies([Copied(99, host_id(url.key), depth, prints("amber a"))]) == [None]

        self.judge(story)

    def test_a_host_whose_copies_bring_nothing_is_believed_about_short_ones(self) -> None:
        async def story(store: Store) -> None:
            short = prints("amber a", length=20)
            [one] = await visit(store, short)
            for n in range(5):
                assert await store.copies([Copied(99, host_id(one.key), 0, short)]) == [None], n
                await visit(store, short)
            assert await store.copies([Copied(99, host_id(one.key), 0, short)]) == [one.id]

        self.judge(story)

    def test_one_copy_that_brings_something_new_takes_that_back(self) -> None:
        async def story(store: Store) -> None:
            short = prints("amber a", length=20)
            [one] = await visit(store, short)
            for _ in range(4):
                await visit(store, short)
            counts = await store.counts()
            await store.claim([link("brings")], T0)
            lease = await one_lease(store)
            told = finished(lease, lease.urls[0], page(short))
            new = link(f"new{counts.known}", parent=lease.urls[0].id)
            await store.settle([told, released(lease)], [new], T0)
            assert await store.copies([Copied(99, host_id(one.key), 0, short)]) == [None]

        self.judge(story)

    # -- traps ----------------------------------------------------------------------------------------------

    def test_a_shape_that_brings_nothing_new_is_slowed_and_then_refused(self) -> None:
        """Each page leads to one more of its shape, and says what the one before said."""

        async def story(store: Store) -> None:
            await store.claim([link("0")], T0)
            classes, visited = [], []
            for n in range(1, 15):
                lease = await one_lease(store)
                [url] = lease.urls
                classes.append(url.front_class)
                visited.append(url.id)
                told = finished(lease, url, page(prints("amber", f"{n}", shape="/{n}")))
                await store.settle([told, released(lease)], [link(str(n), parent=url.id)], T0)
                [story] = await store.find([address(str(n)).key])
                if story is not None and story.reason:
                    break
            assert (n, story and story.reason) == (10, Reason.TRAP)
            assert classes == [5, 5, 5, 5, 5, 5, 5, 9, 9, 9]
            [shape] = await store.shapes(host_id(url.key), 1)
            assert (shape.host, shape.shape, shape.pages, shape.run) == ("a.test", "/{n}", 10, 6)
            assert shape.latest == visited[-2]
            # A person and a sitemap are taken at their word.
            await store.claim([link("99", relation=Relation.SEED), link("98", relation=Relation.SITEMAP)], T0)
            assert (await store.counts()).states[UrlState.QUEUED] == 2

        self.judge(story, traps=TrapSettings(slow_after=3, stop_after=6))

    @pytest.mark.parametrize("ends", ["new text", "new link elsewhere"])
    def test_one_page_with_something_new_ends_the_run(self, ends: str) -> None:
        async def story(store: Store) -> None:
            await store.claim([link("0")], T0)
            for n in range(1, 30):
                lease = await one_lease(store)
                told = [finished(lease, url) for url in lease.urls if url.url.endswith("-")]
                [url] = [url for url in lease.urls if not url.url.endswith("-")]
                new = n % 5 == 0
                text = f"amber {n}" if new and ends == "new text" else "amber"
                out = [link(f"{n}-", parent=url.id)] if new and ends == "new link elsewhere" else []
                told.append(finished(lease, url, page(prints(text, f"{n}", simhash=None))))
                await store.settle([*told, released(lease)], [link(str(n), parent=url.id), *out], T0)
            assert (await store.counts()).states[UrlState.SKIPPED] == 0

        self.judge(story, traps=TrapSettings(slow_after=0, stop_after=6))

    # -- figures and probes ---------------------------------------------------------------------------------

    def test_figures_add_up(self) -> None:
        async def story(store: Store) -> None:
            await visit(store, prints("amber a"), prints("amber a"), prints("amber b c"), prints("birch", length=9))
            [hour] = await store.yields(host_id(address("0").key))
            assert (hour.pages, hour.exact, hour.near, hour.new) == (4, 1, 1, 2)
            assert hour.hour == T0 - T0 % 3_600_000
            assert [shape.pages for shape in await store.shapes()] == [4]
            assert await store.yields(1) == []

        self.judge(story)

    def test_links_that_were_known_already_are_counted_at_the_first_visit(self) -> None:
        """Of a page, of its hour, of all; repeats are in the page's own number and cost no claim."""

        async def story(store: Store) -> None:
            await store.claim(links(2), T0)
            lease = await one_lease(store)
            first, second = lease.urls
            told = [
                replace(finished(lease, first, page(prints("amber a"))), links=9),
                replace(finished(lease, second, page(None)), links=3),
            ]
            found = [
                link("new", parent=first.id),
                link("0", parent=first.id),
                link("out", parent=first.id, refusal=Reason.OUT_OF_SCOPE),
                link("new", parent=second.id),
            ]
            assert set(await store.settle([*told, released(lease)], found, T0)) == {Answer.SETTLED}
            totals = await store.content_totals()
            assert (totals["links"], totals["known"]) == (12, 10)
            [hour] = await store.yields()
            assert (hour.links, hour.known) == (12, 10)
            [host] = [host for host in await store.hosts() if host.name == "a.test"]
            assert (host.links, host.known) == (12, 10)

        self.judge(story)

    def test_a_probe_is_kept(self) -> None:
        async def story(store: Store) -> None:
            probe = Probe(T0, 200, b"\1" * 32, 1 << 63, 9)
            assert await store.probe(5) is None
            await store.keep_probe(5, probe)
            await store.keep_probe(5, replace(probe, length=10))
            assert await store.probe(5) == replace(probe, length=10)

        self.judge(story)
