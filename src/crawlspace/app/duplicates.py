"""Groups of pages that say the same, who stands for each, and where two of them differ.

The groups are those that the crawl found as it went on: equal texts, and near-duplicates by SimHash. Whoever wants
all near-duplicates has the archive read through: then texts are grouped by MinHash, each pair counted exactly.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum, unique
from itertools import groupby, islice
from typing import NamedTuple

from msgspec import Struct

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.snapshot import Elsewhere, Whereabouts, open_groups, reading_disk
from crawlspace.archive.reader import Reader
from crawlspace.content.difference import Difference, difference
from crawlspace.content.minhash import Document, MinHashSettings, NearDuplicates
from crawlspace.content.significant import kin, significant_fields
from crawlspace.engine.fingerprints import Content
from crawlspace.errors import StoreDamaged
from crawlspace.fetch.replay import result_of
from crawlspace.frontier.alike import Copy, Groups
from crawlspace.policy.representative import Chosen, Member, representative
from crawlspace.settings import Settings
from crawlspace.types import Story, Unusable
from crawlspace.urls import Identity, policy_from

MEMBERS = 1000
"""Members of a group that are looked at; further ones are counted."""
AT_ONCE = 1000
"""URLs whose groups are asked for together."""
KEPT = 4096
"""Groups whose representatives are remembered."""


@unique
class Likeness(StrEnum):
    """How the pages of a group are alike."""

    EXACT = "exact"
    """All say the same."""
    NEAR = "near"
    """Some say nearly the same, by SimHash."""
    SIMILAR = "similar"
    """Each shares most of its text with another of them, by MinHash."""


class Wanted(NamedTuple):
    """Which groups are asked for."""

    likeness: Likeness | None = None
    """None: all that the crawl found."""
    host: str | None = None
    """Only groups with a page of this host."""
    least: int = 2
    """Only groups of so many pages."""
    threshold: float = 0.9
    """Part of their text that similar pages share."""
    links: bool = False
    """Count the links to pages first, in the archive: who stands for a group may depend on them."""


class Group(Struct, frozen=True):
    """Pages that say the same."""

    likeness: Likeness
    copies: Sequence[Copy]
    chosen: Chosen
    more: int = 0
    """Further members that were only counted."""

    @property
    def size(self) -> int:
        return len(self.copies) + self.more

    @property
    def first(self) -> Copy:
        """The page that stands for the group."""
        return next(copy for copy in self.copies if copy.id == self.chosen.member.id)


class Duplicates:
    """The groups of one crawl at one moment. Made by `open_duplicates`."""

    def __init__(self, directory: CrawlDirectory, settings: Settings, groups: Groups, identity: Identity) -> None:
        disk = reading_disk(directory, settings)
        self._archive = Reader(disk, directory.archive, settings.archive.max_record)
        self._whereabouts = Whereabouts(directory, disk, groups.pages.owner)
        self._settings = settings
        self._groups = groups
        self._identity = identity
        self._chosen: OrderedDict[tuple[int, bytes], int] = OrderedDict()
        self.unreadable = 0
        """Pages whose capture could not be read."""
        self.elsewhere = Elsewhere()
        """Those whose capture lies in the archive of another worker."""

    def groups(self, wanted: Wanted) -> Iterator[Group]:
        """The groups that are asked for, in the order in which their first pages were found."""
        if wanted.links:
            self._count_links()
        if wanted.likeness is Likeness.SIMILAR:
            found = self._similar(wanted)
        elif wanted.likeness is Likeness.EXACT:
            found = self._exact()
        else:
            found = self._found(wanted.likeness)
        for group in found:
            if group.size >= wanted.least and _is_of(group, wanted.host):
                yield group

    def represents(self, number: int, *, near: bool = False) -> bool:
        """Whether a page stands for its group, as one that has none does; with `near` also for near-duplicates."""
        return self._represents(number, self._groups.pages.groups_of([number]).get(number), near=near)

    def _represents(self, number: int, found: tuple[int | None, bytes] | None, *, near: bool = False) -> bool:
        if found is None or found[0] is None:
            return True
        group, text = found[0], b"" if near else found[1]
        chosen = self._chosen.get((group, text))
        if chosen is None:
            members = (copy for copy in self._groups.pages.members(group) if near or copy.text == text)
            chosen = self._chosen[group, text] = self._group(Likeness.NEAR, members).chosen.member.id
            if len(self._chosen) > KEPT:
                self._chosen.popitem(last=False)
        return chosen == number

    def kept(self, stories: Iterable[Story]) -> Iterator[Story]:
        """Those of some URLs that are kept of those that say the same; of what has no text, of the same bytes."""
        waiting = iter(stories)
        while some := list(islice(waiting, AT_ONCE)):
            groups = self._groups.pages.groups_of([story.id for story in some])
            for story in some:
                found = groups.get(story.id)
                if story.copy_of is None if found is None else self._represents(story.id, found):
                    yield story

    def difference(self, group: Group) -> tuple[Copy, Difference] | None:
        """A member whose text is not that of the page that stands for the group, and where the two differ.

        None when all texts are equal, or one of the two cannot be read.
        """
        other = next((copy for copy in group.copies if copy.text != group.first.text), None)
        if other is None:
            return None
        texts = self.text(group.first), self.text(other)
        return (other, difference(*texts)) if all(texts) else None

    def text(self, copy: Copy) -> str:
        """What a page says, as it was compared; empty when its capture cannot be read."""
        content = self._content(copy)
        return "" if content is None else content.text()

    # -- how groups are made --------------------------------------------------------------------------------

    def _found(self, likeness: Likeness | None) -> Iterator[Group]:
        for _, members in groupby(self._groups.pages.members(), key=lambda copy: copy.group):
            group = self._group(Likeness.NEAR, members)
            if len({copy.text for copy in group.copies}) == 1:
                group = Group(Likeness.EXACT, group.copies, group.chosen, group.more)
            if likeness is None or group.likeness is likeness:
                yield group

    def _exact(self) -> Iterator[Group]:
        """Groups of equal texts, also within those of near-duplicates."""
        for _, members in groupby(self._groups.pages.members_by_text(), key=lambda copy: (copy.group, copy.text)):
            yield self._group(Likeness.EXACT, members)

    def _similar(self, wanted: Wanted) -> Iterator[Group]:
        near: NearDuplicates[int] = NearDuplicates(
            lambda number: self.text(self._groups.pages.page(number)), MinHashSettings(threshold=wanted.threshold)
        )
        for copy in self._groups.pages.pages():
            content = self._content(copy)
            if content is not None:
                text = content.text()
                near.add(Document(copy.id, text, self._kin(content, text) if copy.kin is None else copy.kin))
        for numbers in near.groups():
            yield self._group(Likeness.SIMILAR, map(self._groups.pages.page, numbers))

    def _count_links(self) -> None:
        """Each page counts once for each page that it links to, itself left out."""
        for copy in self._groups.pages.pages():
            content = self._content(copy)
            if content is not None:
                page = content.read
                texts = [link.url for link in page.links]
                found = self._identity.identify_many(texts, page.base_url, encoding=page.charset)
                targets = {each.canonical for each in found if not isinstance(each, Unusable)}
                self._groups.count_links(targets - {self._form(copy.url)})

    def _kin(self, content: Content, text: str) -> int:
        """The number of those that a page may be merged with, as the crawl makes it."""
        title = content.read.title
        fields = significant_fields(text, self._settings.content.fields, {"title": title} if title else None)
        return kin((content.read.language or "").lower(), fields)

    def _group(self, likeness: Likeness, members: Iterable[Copy]) -> Group:
        copies: list[Copy] = []
        more = 0
        for copy in members:
            if len(copies) < MEMBERS:
                copies.append(copy)
            else:
                more += 1
        return Group(likeness, copies, representative([self._member(copy) for copy in copies]), more)

    def _member(self, copy: Copy) -> Member:
        own = self._form(copy.url)
        declared = own if copy.declared == "" else copy.declared and self._form(copy.declared)
        redirects = self._groups.redirects(own)
        links = self._groups.links(own)
        return Member(copy.id, own, declared, redirects, copy.in_sitemap, links, copy.found_at)

    def _form(self, url: str) -> str:
        return _form(self._identity, url)

    def _content(self, copy: Copy) -> Content | None:
        if copy.pointer is None:
            return None
        try:
            result = result_of(self._archive.open(copy.pointer), self._settings.fetch)
            return Content.of(result, self._settings.discovery)
        except StoreDamaged:
            owner = self._whereabouts.owner(copy.pointer)
            if owner is None:
                self.unreadable += 1
            else:
                self.elsewhere[owner] += 1
            return None


def _is_of(group: Group, host: str | None) -> bool:
    return host is None or any(copy.host == host for copy in group.copies)


def _form(identity: Identity, url: str) -> str:
    address = identity.identify(url)
    return url if isinstance(address, Unusable) else address.canonical


@contextmanager
def open_duplicates(directory: CrawlDirectory, settings: Settings) -> Iterator[Duplicates]:
    """The groups of a crawl as they are now; raises `CrawlDirError` or `StoreError`."""
    directory.require()
    identity = Identity(policy_from(settings.identity))
    with open_groups(directory, settings, lambda url: _form(identity, url)) as groups:
        yield Duplicates(directory, settings, groups, identity)
