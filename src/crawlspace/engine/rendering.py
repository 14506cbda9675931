"""Pages given to a browser on their way from the fetch to the reader, and what was learned of which need it.

HTTP first: the answer of the page itself is there, and the browser asks only for what its scripts want. What it
makes of the page takes the place of the body for all who read it. A page that cannot be rendered is read as it came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
from msgspec.structs import replace

from crawlspace import events
from crawlspace.clock import Clock
from crawlspace.engine.fingerprints import Content
from crawlspace.exchange import FetchResult, Rendered
from crawlspace.pages.links import PageSettings
from crawlspace.pages.mime import is_html
from crawlspace.pages.shell import looks_of
from crawlspace.policy.outcome import Kind, Outcome
from crawlspace.policy.patterns import Patterns
from crawlspace.policy.rendering import (
    FACT,
    Gain,
    Memory,
    PageKind,
    RenderingSettings,
    kind_of,
    remembered,
    why_shell,
)
from crawlspace.policy.scope import BELONGINGS
from crawlspace.policy.traps import shape_of
from crawlspace.ports import Ledger, Renderer
from crawlspace.types import Address, QueuedUrl, Relation, Unusable
from crawlspace.urls import Identity

COUNTED: Final = 20
"""Pages after which the counts are kept; a crash may lose fewer."""
TRIALS: Final = 3
"""Times that a kind is tried whose pages cannot be rendered."""
_BESIDE: Final = BELONGINGS | {Relation.SITEMAP_FILE}
"""Relations of what no browser is needed for."""


@dataclass(slots=True)
class Rendering:
    """Decides, and has it done. One for a run."""

    settings: RenderingSettings
    renderer: Renderer
    ledger: Ledger
    identity: Identity
    pages: PageSettings
    clock: Clock
    watch: events.Watcher
    _rules: Sequence[tuple[str, Patterns]] = ()
    _memory: Memory | None = None
    _counted: Memory = field(default_factory=Memory)
    """What is not kept yet."""
    _failures: dict[str, int] = field(default_factory=dict)
    _trying: dict[str, asyncio.Lock] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rules = [(each, Patterns.of((each,), "rendering.rules")) for each in self.settings.rules]

    async def expects(self, url: QueuedUrl) -> bool:
        """Whether the page will be rendered whatever it says: then it must come whole, changed or not."""
        if self._rule(url.url) is not None:
            return True
        address = self._address(url)
        return address is not None and (await self._known()).wants(address.host, shape_of(address.canonical)) is True

    async def of(self, url: QueuedUrl, result: FetchResult, outcome: Outcome) -> FetchResult:
        """The answer as it is to be read: rendered, where that is wanted and can be had."""
        if outcome.kind is not Kind.SUCCESS or result.error is not None or result.rendered is not None:
            return result
        if url.request is not None or url.relation in _BESIDE or not is_html(result.headers, result.body):
            return result
        rule = self._rule(url.url)
        if rule is not None:
            return await self._rendered(result, f"the rule {rule}")
        address = self._address(url)
        if address is None or not self.settings.evidence:
            return result
        return await self._by_kind(result, address.host, shape_of(address.canonical))

    async def close(self) -> None:
        """Keep what was counted, and end the browser."""
        try:
            await self._keep()
        finally:
            await self.renderer.close()

    # -- decisions ------------------------------------------------------------------------------------------

    def _rule(self, url: str) -> str | None:
        return next((text for text, patterns in self._rules if patterns.match(url)), None)

    def _address(self, url: QueuedUrl) -> Address | None:
        address = self.identity.identify(url.url, request=url.request)
        return None if isinstance(address, Unusable) else address

    async def _by_kind(self, result: FetchResult, host: str, shape: str) -> FetchResult:
        key = kind_of(host, shape)
        memory = await self._known()
        if key in memory.kinds:
            if not memory.kinds[key].renders:
                return result
            return await self._rendered(result, f"pages such as {host}{shape} need it")
        looks = looks_of(result.body, result.headers)
        why = None if looks is None else why_shell(looks)
        wanted = memory.wants(host, shape)
        if why is None or wanted is False or self._failures.get(key, 0) >= TRIALS:
            return result
        if wanted:
            return await self._rendered(result, f"{why}, and shells of {host} need it")
        lock = self._trying.setdefault(key, asyncio.Lock())
        async with lock:  # one page of a kind is enough to know
            if key in (await self._known()).kinds:
                return await self._by_kind(result, host, shape)
            tried = await self._try(result, key, why)
        self._trying.pop(key, None)
        return tried

    async def _try(self, result: FetchResult, key: str, why: str) -> FetchResult:
        """Render one page of a kind, and remember whether that brought anything."""
        shown = await self._rendered(result, why)
        if shown.rendered is None:
            self._failures[key] = self._failures.get(key, 0) + 1
            return shown
        gain = self._gain(result, shown)
        kind = PageKind(gain.is_worth_it, why, result.url, self.clock.now(), str(gain))
        self._counted = self._counted.with_kind(key, kind)
        await self._keep()
        return shown if gain.is_worth_it else result

    def _gain(self, before: FetchResult, then: FetchResult) -> Gain:
        one, other = Content.of(before, self.pages), Content.of(then, self.pages)
        links = {link.url for link in one.read.links}
        new = {link.url for link in other.read.links} - links
        return Gain(len(one.text()), len(other.text()), len(links), len(new))

    # -- rendering and remembering --------------------------------------------------------------------------

    async def _rendered(self, result: FetchResult, why: str) -> FetchResult:
        found = await self.renderer.render(result, why)
        if not isinstance(found, Rendered):
            self.watch(events.Warned(f"{result.url} is read as it was sent: {found.why}"))
            self._counted = self._counted.plus(Memory(failed=1))
            return _told(result, f"not rendered: {found.why}")
        counted = Memory(pages=1, requests=found.requests - found.refused, bytes=found.size)
        self._counted = self._counted.plus(counted)
        if self._counted.pages >= COUNTED:
            await self._keep()
        return _told(result.showing(found), f"rendered: {why}")

    async def _known(self) -> Memory:
        if self._memory is None:
            self._memory = remembered(await self.ledger.notes())
        return self._memory

    async def _keep(self) -> None:
        """Add what is new to what the crawl remembers; others may do so too."""
        new, self._counted = self._counted, Memory()
        while new != Memory():
            facts = await self.ledger.notes()
            kept = remembered(facts).plus(new)
            if await self.ledger.revise(FACT, facts.get(FACT), msgspec.json.encode(kept).decode()):
                self._memory = kept
                return


def _told(result: FetchResult, detail: str) -> FetchResult:
    return replace(result, detail="; ".join(filter(None, (result.detail, detail))))
