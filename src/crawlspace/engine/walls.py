"""Pages that are not there although their host says so: soft 404s, told by the host's answer to an invented path.

A host of which some pages were read is asked once for a path that nobody links to. Where that is answered like a
page, pages that look like the answer are no pages (`content.soft404`). Sites whose scripts draw every page give all
addresses the same words; they are known by most of their pages looking like the answer, and nothing is said of them.
What a person named is taken at its word.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from crawlspace.clock import Chance
from crawlspace.content.soft404 import Likeness, Soft404Settings, alike, likeness
from crawlspace.content.templates import Sign, sign_of
from crawlspace.engine.fingerprints import Content
from crawlspace.exchange import FetchResult
from crawlspace.pages.links import PageSettings
from crawlspace.ports import ContentIndex
from crawlspace.types import Fingerprints, Probe, QueuedUrl, Relation, Unusable
from crawlspace.urls import Identity, origin_of

HOSTS: Final = 10_000
"""Hosts that are remembered at once; the one not seen for longest gives way, and is asked for again in the store."""
REMEMBERED: Final = 20
"""Pages of a host that are held against the answer when it comes."""
UNLIKE: Final = 2
"""Pages that must look otherwise than the answer before it is held against any; and they must be the most."""
FAR: Final = 12
"""Bits in which the SimHash of such a page differs at least."""
Look = Callable[[], Content]
"""Gives a page with what was read of it."""
_LETTERS: Final = "bcdfghjkmnpqrstvwxz"
_NO_PAGE: Final = b""


class _Seen(NamedTuple):
    """A page that was read before the answer was known."""

    text: bytes
    simhash: int | None


@dataclass(slots=True)
class _Host:
    """What is known of one host."""

    hid: int
    origin: str
    probe: Probe | None
    read: int = 0
    """Pages read in this run."""
    asked: bool = False
    saved: bool = True
    like: int = 0
    unlike: int = 0
    seen: list[_Seen] = field(default_factory=list)

    @property
    def tells(self) -> bool:
        """Whether pages can be held against the answer."""
        known = self.probe is not None and self.probe.digest != _NO_PAGE
        return known and self.unlike >= UNLIKE and self.unlike > self.like


class Walls:
    """Asks hosts for invented paths, and holds pages against the answers. One for a run."""

    def __init__(
        self, index: ContentIndex, identity: Identity, after: int, pages: PageSettings, chance: Chance
    ) -> None:
        self._index = index
        self._identity = identity
        self._after = after
        self._pages = pages
        self._chance = chance
        self._settings = Soft404Settings()
        self._hosts: OrderedDict[str, _Host] = OrderedDict()
        self._open: dict[str, _Host] = {}

    # -- as one who asks ------------------------------------------------------------------------------------

    def question(self, host: str) -> str | None:
        """A path that nobody links to, once enough pages of the host were read."""
        known = self._hosts.get(host)
        if known is None or known.probe is not None or known.asked or known.read < self._after:
            return None
        known.asked = True
        url = f"{known.origin}/{self._word()}-{self._word()}"
        self._open[url] = known
        return url

    def answered(self, url: str, result: FetchResult) -> None:
        """Keep what the host answers; an answer that is no page says that the host can be believed."""
        host = self._open.pop(url)
        if result.error is not None and result.status == 0:
            return
        host.probe, host.saved = self._probe(url, result), False
        if host.probe.digest == _NO_PAGE:
            return
        for page in host.seen:
            _count(host, like=page.text == host.probe.digest or _is_near(page.simhash, host.probe.simhash))
        host.seen.clear()

    def _word(self) -> str:
        return "".join(_LETTERS[int(self._chance.random() * len(_LETTERS))] for _ in range(9))

    def _probe(self, url: str, result: FetchResult) -> Probe:
        if not 200 <= result.status < 300:
            return Probe(result.started_at, result.status, _NO_PAGE, 0, 0)
        made = likeness(Content.of(result, self._pages).text(), url)
        return Probe(result.started_at, result.status, made.digest, made.simhash, made.length)

    # -- as one who judges ----------------------------------------------------------------------------------

    async def why_missing(self, url: QueuedUrl, hid: int, look: Look) -> str | None:
        """In words why a page is not there, although the server says so; None when it is, or nobody can tell.

        `look` reads the page, which is done only where it can tell something.
        """
        host = await self._host(url, hid)
        if host is None or host.probe is None or host.probe.digest == _NO_PAGE or url.relation is Relation.SEED:
            return None
        content = look()
        text = content.text()
        if not text:
            return None
        made, invented = likeness(text, url.url), Likeness(host.probe.digest, host.probe.simhash, host.probe.length)
        tells, like = host.tells, alike(made, invented, self._settings)
        _count(host, like=like)
        if not (tells and like):
            return None
        if made.digest == invented.digest:
            return "it says what the host answers to a path that nobody links to"
        # Pages with much around few words of their own are alike too: they must say it themselves.
        missing = sign_of(content.read.title, text) is Sign.NOT_FOUND
        return "it looks like what the host answers to a path that nobody links to, and says so" if missing else None

    async def read(self, url: QueuedUrl, hid: int, fingerprints: Fingerprints | None) -> None:
        """One page more of a host was read."""
        host = await self._host(url, hid)
        if host is None or host.probe is not None or fingerprints is None:
            return
        host.read += 1
        if len(host.seen) < REMEMBERED:
            host.seen.append(_Seen(fingerprints.text, fingerprints.simhash))

    async def _host(self, url: QueuedUrl, hid: int) -> _Host | None:
        address = self._identity.identify(url.url, request=url.request)
        if isinstance(address, Unusable):
            return None
        host = self._hosts.get(address.host)
        if host is None:
            host = _Host(hid, origin_of(url.url), await self._index.probe(hid))
            self._hosts[address.host] = host
            if len(self._hosts) > HOSTS:
                self._hosts.popitem(last=False)
        self._hosts.move_to_end(address.host)
        if not host.saved and host.probe is not None:
            host.saved = True
            await self._index.keep_probe(host.hid, host.probe)
        return host


def _count(host: _Host, *, like: bool) -> None:
    host.like += like
    host.unlike += not like


def _is_near(one: int | None, other: int) -> bool:
    return one is not None and (one ^ other).bit_count() < FAR
