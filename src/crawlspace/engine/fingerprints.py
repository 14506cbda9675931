"""What a page's content is known by: made once for each page, in the worker that fetched it.

Large pages are hashed on another thread, so that the loop goes on meanwhile; the others take less than a millisecond.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from msgspec import Meta, Struct

from crawlspace.content.novelty import novelty
from crawlspace.content.significant import FieldName, SignificantSettings, kin, significant_fields
from crawlspace.content.simhash import SimHashSettings, text_simhash
from crawlspace.content.templates import sign_of
from crawlspace.content.text import LEAST_TEXT, follow_digest, main_text, plain_utf8, text_digest
from crawlspace.content.volatile import mask
from crawlspace.exchange import FetchResult
from crawlspace.pages.encoding import decode, sniff
from crawlspace.pages.links import Page, PageSettings, is_html, read_page
from crawlspace.pages.mime import content_type
from crawlspace.pages.source import Source
from crawlspace.policy.traps import shape_of
from crawlspace.types import Address, Fingerprints
from crawlspace.urls.variants import is_view, names_view

LARGE: Final = 256 << 10
"""Bytes of a text above which it is hashed on another thread."""
SIGN_LIMIT: Final = 6_000
"""Characters of a text above which it has too many words to be an error page or an empty list."""
LANGUAGE_LIMIT: Final = 20
"""Characters of a declared language that are kept."""

_TEXTS: Final = ("text/", "application/json", "application/xml", "application/javascript")
_NO_TEXTS: Final = frozenset({"text/html", "text/css", "text/javascript"})


class ContentSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is made of the content of pages."""

    fingerprints: Annotated[
        bool, Meta(description="Know pages by their text too; off, copies are known by their bytes alone.")
    ] = True
    stop_copies: Annotated[
        bool,
        Meta(description="Leave the links of a page alone whose text and links another page has, session ids apart."),
    ] = True
    near: Annotated[
        bool, Meta(description="Mark near-duplicates by SimHash: half a millisecond of CPU for a page of 42 KB.")
    ] = True
    distance: Annotated[
        int,
        Meta(
            description="Bits of 64 in which the SimHash of near-duplicates may differ. A crawl that changes it "
            "compares only pages fetched since.",
            ge=1,
            le=7,
        ),
    ] = SimHashSettings().distance
    probe_after: Annotated[
        int,
        Meta(
            description="Pages of a host after which it is asked once for a path that nobody links to, so that soft "
            "404s are known by its answer. 0: never.",
            ge=0,
        ),
    ] = 10
    fields: Annotated[
        tuple[FieldName, ...],
        Meta(
            description="Fields read from the text of pages; pages in which one differs are never near-duplicates. "
            "`number` is every number there is."
        ),
    ] = SignificantSettings().fields


@dataclass(slots=True)
class Content:
    """An answer with what was read of it."""

    result: FetchResult
    read: Page
    source: Source | None
    """The markup of a page; None for anything else."""

    @classmethod
    def of(cls, result: FetchResult, settings: PageSettings) -> Content:
        """Read the answer."""
        body, headers = result.body, result.headers
        source = None
        if is_html(headers, body):
            source = Source(body, sniff(body, headers), wants_text=True)
        return cls(result, read_page(body, result.url, headers, settings, source=source), source)

    def text(self) -> str:
        """What a reader sees of it, volatile parts masked; empty for what is no text."""
        return self.utf8().decode()

    def utf8(self) -> bytes:
        """The same in UTF-8."""
        if self.source is not None:
            return mask(self.source.text)
        essence = content_type(self.result.headers).essence
        if essence in _NO_TEXTS or not essence.startswith(_TEXTS):
            return b""
        return plain_utf8(decode(self.result.body, self.read.charset))


class Fingerprinting(Struct, frozen=True):
    """Makes fingerprints. One for a run."""

    settings: ContentSettings
    max_depth: int
    """The scope's: links of a page at this depth are refused."""

    async def of(self, page: Content, address: Address, links: Sequence[Address], depth: int) -> Fingerprints | None:
        """The fingerprints of a page; None when it has no text or none are wanted.

        `links` are those of the page that are followed. Its tree may be spent: who looks into it, does so before.
        """
        read = page.read
        text = page.utf8() if self.settings.fingerprints else b""
        if not text:
            return None
        partial = depth >= self.max_depth or read.nofollow or read.links_cut
        if len(text) < LARGE:
            return self._make(text, page, address, links, partial)
        return await asyncio.to_thread(self._make, text, page, address, links, partial)

    def _make(
        self, text: bytes, page: Content, address: Address, links: Sequence[Address], partial: bool
    ) -> Fingerprints:
        read = page.read
        digest = text_digest(text)
        length = len(text) if text.isascii() else len(text.decode())
        language = (read.language or "").lower()[:LANGUAGE_LIMIT]
        near = None
        relatives = 0
        if self.settings.near:
            fields = significant_fields(text, self.settings.fields, {"title": read.title} if read.title else None)
            near, relatives = text_simhash(text), kin(language, fields)
        return Fingerprints(
            text=digest,
            follow=follow_digest(digest, [link.canonical for link in links]),
            length=length,
            novelty=novelty(text, address.canonical),
            simhash=near,
            kin=relatives,
            language=language,
            shape=shape_of(address.canonical),
            sign=sign_of(read.title, text) if length <= SIGN_LIMIT else None,
            partial=partial,
            main=_main(page, address, links),
        )


def _main(page: Content, address: Address, links: Sequence[Address]) -> bytes:
    """The digest of a page's own words, if it may be a view of another page or has a view of its own; else empty."""
    own = address.canonical
    if page.source is None or not (names_view(own) or _has_view(own, links)):
        return b""
    text = main_text(page.source.tree.document)
    return text_digest(text) if len(text) >= LEAST_TEXT else b""


def _has_view(own: str, links: Sequence[Address]) -> bool:
    start = f"{own}/"
    return any(link.canonical.startswith(start) and is_view(own, link.canonical) for link in links)
