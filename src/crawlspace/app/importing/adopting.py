"""From what a source holds to what a crawl knows, by the same way as from the web: read, committed, settled.

A capture is read by the crawl's own reader, so that its links go through intake as if the page had just come, and is
committed by the crawl's own committer: bytes first, then one transaction that claims the links and settles the URL.
Only two things are other than in a crawl: what lies in the archive already is not written again, and the settlements
are of URLs that nobody has leased. What a kill interrupts is done again, and changes nothing where it was done.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from typing import Any, NamedTuple

from msgspec.structs import replace

from crawlspace.app.compose import OpenCrawl
from crawlspace.app.importing.captures import Found
from crawlspace.app.importing.imported import Imported
from crawlspace.app.importing.lists import Listed
from crawlspace.app.importing.revisits import ABSENT, whole
from crawlspace.app.store import Store
from crawlspace.archive.record import date_text
from crawlspace.archive.warc import WarcArchive
from crawlspace.engine.commit import Basket, Committer, Item
from crawlspace.engine.reading import Reader, Spent
from crawlspace.exchange import Capture
from crawlspace.fetch.replay import result_of
from crawlspace.frontier.bounds import NO_TOKEN
from crawlspace.policy.outcome import Kind, classify
from crawlspace.policy.priority import front_class
from crawlspace.states import UrlState
from crawlspace.types import (
    Address,
    Adopted,
    Answer,
    Claim,
    Claimed,
    Died,
    Finished,
    Pointer,
    ProcessingFailed,
    QueuedUrl,
    Reason,
    Refused,
    Relation,
    RequestSpec,
    Settlement,
    Story,
    Unusable,
    WasRedirect,
    host_id,
)

CAPTURES_AT_ONCE = 100
BYTES_AT_ONCE = 16 << 20
URLS_AT_ONCE = 1000
REVISITS_AT_ONCE = 1000
REVISITS_WAITING = 20_000
"""Revisits that are held until all sources are read: some 50 MB."""
ROOTS_MAX = 1000
ROBOTS = "/robots.txt"

_ADOPTED = (Finished, ProcessingFailed, WasRedirect, Refused, Died)


class _Placed(NamedTuple):
    """A capture, or a URL without one, and what the crawl knows of its URL."""

    address: Address
    story: Story
    found: Found


class _InPlace(Capture, frozen=True):
    """A capture that lies in the archive already."""

    where: Pointer | None = None


class _Archive:
    """The crawl's archive, which is not asked to write what it has."""

    def __init__(self, archive: WarcArchive) -> None:
        self._archive = archive

    def __getattr__(self, name: str) -> Any:
        return getattr(self._archive, name)

    async def append(self, capture: Capture) -> Pointer:
        if isinstance(capture, _InPlace) and capture.where is not None:
            return capture.where
        return await self._archive.append(capture)


class _Frontier:
    """The crawl's store, in which what is settled needs no lease."""

    def __init__(self, store: Store, done: Imported) -> None:
        self._store = store
        self._done = done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def settle(self, settlements: Sequence[Settlement], claims: Sequence[Claim]) -> list[Answer]:
        adopted: list[Adopted] = [each for each in settlements if isinstance(each, _ADOPTED)]
        assert len(adopted) == len(settlements), "only these are handed over"
        answers = await self._store.adopt(adopted, claims)
        for settlement, settled in zip(adopted, answers, strict=True):
            if not settled:
                self._done.known += 1
            elif isinstance(settlement, Refused):
                self._done.visited += 1
            else:
                self._done.captures += 1
        return [Answer.SETTLED if settled else Answer.STALE for settled in answers]


@asynccontextmanager
async def adopting(
    crawl: OpenCrawl, done: Imported, since: int | None = None, *, draws: bool = False
) -> AsyncIterator[Adopting]:
    """What takes sources into a crawl that we own; all of it is durable at the end of the context.

    What was visited before `since` is queued, to be fetched again. With `draws` the scope is drawn around the hosts
    of what is taken in, as around seeds, for no more than `ROOTS_MAX` of them.
    """
    beside: Any = dataclasses.replace(
        crawl,
        frontier=_Frontier(crawl.frontier, done),  # type: ignore[arg-type]  # it passes on all but one call
        archive=_Archive(crawl.archive),  # type: ignore[arg-type]  # as above
    )
    try:
        async with beside.engine() as loop, asyncio.TaskGroup() as group:
            basket = Basket(lambda: False)
            group.create_task(loop.committer.run(basket))
            adopter = Adopting(crawl, done, _Wishes(since, draws), loop.reader, basket, loop.committer)
            try:
                yield adopter
            finally:
                basket.close()
    except BaseExceptionGroup as failures:
        # One part failed and the other was cancelled for it, or both for the same reason.
        raise failures.exceptions[0] from None


class _Wishes(NamedTuple):
    """How what is taken in is to be seen."""

    since: int | None
    draws: bool


class Adopting:
    """Takes captures and URLs into a crawl. Made by `adopting`."""

    def __init__(  # noqa: PLR0913 -- its parts, put together in one place
        self,
        crawl: OpenCrawl,
        done: Imported,
        wishes: _Wishes,
        reader: Reader,
        basket: Basket,
        committer: Committer,
    ) -> None:
        self._crawl = crawl
        self._done = done
        self._since = wishes.since
        self._draws = wishes.draws
        self._roots: set[str] = set()
        self._waiting: list[Found] = []
        """Revisits whose original may come in a later source."""
        self._reader = reader
        self._basket = basket
        self._committer = committer
        self._first = front_class(crawl.plan.settings.priority, 0, Relation.USER)

    async def captures(self, found: Iterable[Found]) -> None:
        """Take captures in; returns when they are durable. Revisits may wait for `finish`."""
        revisits: list[Found] = []
        for batch in _batches(found):
            revisits += [each for each in batch if each.revisit is not None]
            await self._captures([each for each in batch if each.revisit is None])
            if len(revisits) >= REVISITS_AT_ONCE:
                await self._revisits(revisits)
                revisits = []
        await self._revisits(revisits)

    async def finish(self) -> None:
        """All sources are read: revisits whose original has not come are passed over, and counted."""
        waiting, self._waiting = self._waiting, []
        await self._revisits(waiting, last=True)

    async def _captures(self, batch: Sequence[Found]) -> None:
        for placed in await self._placed(batch):
            await self._capture(placed)

    async def _revisits(self, revisits: Sequence[Found], *, last: bool = False) -> None:
        """Take revisits in with the payloads of their originals; unless it is the `last` time, the others wait."""
        await self._drained()
        for start in range(0, len(revisits), CAPTURES_AT_ONCE):
            batch = revisits[start : start + CAPTURES_AT_ONCE]
            found = await whole(self._crawl, batch)
            for revisit, each in zip(batch, found, strict=True):
                if isinstance(each, Found):
                    await self._captures([each])
                elif last or each != ABSENT or len(self._waiting) >= REVISITS_WAITING:
                    self._done.passed[each] += 1
                else:
                    self._waiting.append(revisit)
        await self._drained()

    async def urls(self, listed: Iterable[Listed]) -> None:
        """Take in URLs that were visited and have no capture."""
        waiting = iter(listed)
        while batch := list(islice(waiting, URLS_AT_ONCE)):
            for each, story, address in await self._known([(one, None) for one in batch]):
                await self._url(each, story, address)
        await self._drained()

    async def seeds(self, urls: Iterable[str]) -> None:
        """Queue URLs that were still to be visited."""
        waiting = iter(urls)
        while batch := list(islice(waiting, URLS_AT_ONCE)):
            addresses = [address for url in batch if (address := self._address(url, None)) is not None]
            await self._draw(addresses)
            scope = self._crawl.intake.scope
            refusals = [scope.judge(address, depth=0, hops=0, relation=Relation.USER) for address in addresses]
            claims = [
                replace(self._claim(address, None), refusal=refusal)
                for address, refusal in zip(addresses, refusals, strict=True)
            ]
            for claim, answer in zip(claims, await self._crawl.frontier.claim(claims), strict=True):
                if claim.refusal is not None:
                    self._done.passed[f"refused: {claim.refusal}"] += 1
                elif answer is Claimed.NEW:
                    self._done.queued += 1
                else:
                    self._done.known += 1

    # -- captures -------------------------------------------------------------------------------------------

    async def _placed(self, batch: Sequence[Found]) -> list[_Placed]:
        """Those of the captures whose URL waits for one."""
        wanted: list[tuple[Found, RequestSpec | None]] = []
        for each in batch:
            capture = each.capture
            if capture.url.partition("//")[2].partition("/")[2] == ROBOTS[1:]:
                self._done.passed["robots.txt"] += 1
            elif capture.method == "HEAD":
                self._done.passed["answers to HEAD"] += 1
            else:
                wanted.append((each, _spec_of(capture)))
        return [
            _Placed(address, story, each)
            for each, story, address in await self._known(wanted)
            if self._is_wanted(story, each.capture.at)
        ]

    async def _capture(self, placed: _Placed) -> None:
        capture = placed.found.capture
        result = result_of(capture, self._crawl.plan.settings.fetch)
        outcome = classify(result, capture.at)
        if outcome.kind is Kind.TRANSIENT or result.status == 304:
            # An answer for the moment, or of no content: the URL waits to be asked again.
            self._done.queued += 1
            return
        url = _queued(placed)
        async for item in self._reader.items(Spent(NO_TOKEN, host_id(url.key), url, [result], outcome)):
            if item.settlement is not None and not isinstance(item.settlement, _ADOPTED):
                self._done.queued += 1
                return
            await self._basket.put(_with_place(item, placed.found.pointer))
            # The committer gets a turn.
            await asyncio.sleep(0)

    # -- URLs without captures ------------------------------------------------------------------------------

    async def _url(self, listed: Listed, story: Story, address: Address) -> None:
        if not self._is_wanted(story, listed.at):
            return
        when = "" if listed.at is None else f"visited at {date_text(listed.at)}"
        url = _queued(_Placed(address, story, _NOTHING))
        refused = Refused(NO_TOKEN, host_id(url.key), url, Reason.IMPORTED, when)
        await self._basket.put(Item(settlement=refused))
        await asyncio.sleep(0)

    # -- what the crawl knows -------------------------------------------------------------------------------

    async def _known(self, batch: Sequence[tuple[Any, RequestSpec | None]]) -> list[tuple[Any, Story, Address]]:
        """What the crawl knows of each URL, once it is claimed; of a URL that comes twice in a batch the newest."""
        taken: dict[bytes, tuple[Any, Address]] = {}
        specs: dict[bytes, RequestSpec | None] = {}
        for each, spec in batch:
            text = each.capture.url if isinstance(each, Found) else each.url
            address = self._address(text, spec)
            if address is None:
                continue
            before = taken.get(address.key)
            if before is not None:
                self._done.known += 1
                if _at(before[0]) >= _at(each):
                    continue
            else:
                specs[address.key] = spec
            taken[address.key] = (each, address)
        addresses = [address for _, address in taken.values()]
        await self._draw(addresses)
        await self._crawl.frontier.claim([self._claim(address, specs[address.key]) for address in addresses])
        stories = await self._crawl.frontier.find(list(taken))
        return [
            (each, story, address)
            for (each, address), story in zip(taken.values(), stories, strict=True)
            if story is not None
        ]

    def _address(self, text: str, spec: RequestSpec | None) -> Address | None:
        address = self._crawl.identity.identify(text, request=spec)
        if isinstance(address, Unusable):
            self._done.passed[f"URLs that cannot be used: {address.reason}"] += 1
            return None
        return address

    async def _draw(self, addresses: Sequence[Address]) -> None:
        """Draw the scope around hosts that are new, if that is wanted."""
        new = (
            {address.host: address for address in addresses if address.host not in self._roots} if self._draws else {}
        )
        room = ROOTS_MAX - len(self._roots)
        if room < len(new):
            self._done.passed[f"hosts beyond {ROOTS_MAX}, which are not in the scope"] += len(new) - room
        chosen = dict(islice(new.items(), room))
        if chosen:
            self._roots.update(chosen)
            await self._crawl.intake.widen(self._crawl.frontier, *chosen.values())

    def _claim(self, address: Address, spec: RequestSpec | None) -> Claim:
        return Claim(
            address,
            front_class=self._first,
            relation=Relation.USER,
            request=spec,
            seed_host=self._crawl.intake.scope.is_seed_host(address),
        )

    def _is_wanted(self, story: Story, at: int | None) -> bool:
        """Whether a visit at this time is news of a URL that waits, and recent enough."""
        if story.state is not UrlState.QUEUED:
            self._done.known += 1
            return False
        if self._since is not None and at is not None and at < self._since:
            self._done.queued += 1
            return False
        return True

    async def _drained(self) -> None:
        """Return when all that was handed over is settled."""
        while self._committer.pending(self._basket):
            self._committer.progress.clear()
            await self._committer.progress.wait()


_NOTHING = Found(Capture("", 0, 0, b"", b"", b"", b""))


def _at(each: Found | Listed) -> int:
    return each.capture.at if isinstance(each, Found) else each.at or 0


def _batches(found: Iterable[Found]) -> Iterator[list[Found]]:
    batch: list[Found] = []
    size = 0
    for each in found:
        batch.append(each)
        size += len(each.capture.payload)
        if len(batch) >= CAPTURES_AT_ONCE or size >= BYTES_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _spec_of(capture: Capture) -> RequestSpec | None:
    """How a capture was asked for; None for a plain GET."""
    if capture.method == "GET":
        return None
    kind = ""
    for line in capture.request_head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-type":
            kind = value.strip().decode("latin-1")
    return RequestSpec(capture.method, capture.request_body, kind)


def _queued(placed: _Placed) -> QueuedUrl:
    story = placed.story
    return QueuedUrl(
        id=story.id,
        key=placed.address.key,
        url=story.url,
        front_class=story.front_class or 0,
        depth=story.depth,
        hops=story.hops,
        relation=story.relation,
        found_at=story.found_at,
        label=story.label,
        meta=story.meta,
        generation=story.generation,
        request=_spec_of(placed.found.capture),
    )


def _with_place(item: Item, where: Pointer | None) -> Item:
    """The item, its last capture where it lies already."""
    if where is None or not item.captures:
        return item
    last = item.captures[-1]
    known = _InPlace(**{name: getattr(last, name) for name in Capture.__struct_fields__}, where=where)
    return replace(item, captures=[*item.captures[:-1], known])
