"""What exports read a capture with: its records, its page, its text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.exporting.wanted import Exported
from crawlspace.app.snapshot import Whereabouts, reading_disk
from crawlspace.archive.exchanges import Exchange, Exchanges
from crawlspace.archive.reader import Reader
from crawlspace.archive.stored import Stored
from crawlspace.errors import StoreDamaged
from crawlspace.exchange import Capture, FetchResult
from crawlspace.fetch.replay import result_of
from crawlspace.pages.encoding import as_utf8, decode
from crawlspace.pages.links import Page, read_page
from crawlspace.pages.mime import content_type, is_html
from crawlspace.pages.tree import parse
from crawlspace.settings import Settings
from crawlspace.types import Address, Pointer, Story, Unusable
from crawlspace.urls import Identity, policy_from

Found = TypeVar("Found")

_UNSEEN = ["script", "style", "template", "noscript"]
_BLANKS = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\n\s*")


class Read(NamedTuple):
    """A captured answer, decoded, and what was read of it."""

    result: FetchResult
    page: Page


class Sources:
    """Reads the captures of one crawl; what cannot be read is told to `done`."""

    def __init__(
        self,
        directory: CrawlDirectory,
        settings: Settings,
        done: Exported,
        owner: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        """`owner` says which other worker made a file of the archive."""
        largest = settings.archive.max_record
        self._settings = settings
        self.done = done
        disk = reading_disk(directory, settings)
        self._whereabouts = Whereabouts(directory, disk, owner)
        self._reader = Reader(disk, directory.archive, largest)
        self._exchanges = Exchanges(disk, directory.archive, largest)
        self._identity = Identity(policy_from(settings.identity))

    def page(self, story: Story) -> Read | None:
        """What a URL's capture holds; None when there is none, or it cannot be read."""
        pointer = pointer_of(story)
        return None if pointer is None else self._page(story, pointer)

    def exchange(self, story: Story) -> Exchange | None:
        """The records of a URL's capture, whole also where the archive refers to an earlier one."""
        return self._found(story, self._exchanges.at)

    def stored(self, story: Story) -> Stored | None:
        """The records of a URL's capture as they lie there."""
        return self._found(story, self._reader.stored)

    def _found(self, story: Story, at: Callable[[Pointer], Found]) -> Found | None:
        pointer = pointer_of(story)
        if pointer is None:
            return None
        try:
            return at(pointer)
        except StoreDamaged as error:
            self._lost(story, pointer, error)
            return None

    def head(self, file: str) -> bytes:
        """The record that says who made an archive file; empty when it cannot be read."""
        try:
            return self._exchanges.head(file)
        except StoreDamaged:
            return b""

    def read(self, capture: Capture) -> Read:
        """A capture, decoded and read."""
        result = result_of(capture, self._settings.fetch)
        return Read(result, read_page(result.body, result.url, result.headers, self._settings.discovery))

    def identify(self, url: str) -> Address | None:
        """An address under the crawl's rules; None when it is none."""
        address = self._identity.identify(url)
        return None if isinstance(address, Unusable) else address

    def identify_all(self, read: Page) -> list[Address | Unusable]:
        """The addresses of a page's links, in their order."""
        return self._identity.identify_many([link.url for link in read.links], read.base_url, encoding=read.charset)

    def _page(self, story: Story, pointer: Pointer) -> Read | None:
        try:
            return self.read(self._reader.open(pointer))
        except StoreDamaged as error:
            self._lost(story, pointer, error)
        except Exception as error:  # whatever a page does to its reader, the others are exported
            self.done.lost(f"{story.url}: the page cannot be read: {type(error).__name__}: {error}")
        return None

    def _lost(self, story: Story, pointer: Pointer, error: StoreDamaged) -> None:
        owner = self._whereabouts.owner(pointer)
        if owner is None:
            self.done.lost(f"{story.url}: {error.message}")
        else:
            self.done.elsewhere[owner] += 1


def pointer_of(story: Story) -> Pointer | None:
    """Where a URL's capture lies."""
    return story.evidence.pointer if story.evidence is not None else None


def text_of(read: Read) -> str | None:
    """The text of a page as a reader sees it, a line for each piece; None for what is no text."""
    headers, body = read.result.headers, read.result.body
    if is_html(headers, body):
        document = parse(as_utf8(body, read.page.charset)).document
        document.strip_tags(_UNSEEN, recursive=True)
        text = document.body.text(separator="\n") if document.body else ""
    elif content_type(headers).essence.startswith("text/"):
        text = decode(body, read.page.charset)
    else:
        return None
    return _LINES.sub("\n", _BLANKS.sub(" ", text)).strip()
