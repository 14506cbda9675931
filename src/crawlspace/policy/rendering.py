"""Which pages are given to a browser: those that a rule names, and those whose kind has shown that it needs one.

A page that shows next to nothing and has scripts is evidence, not proof: one page of each kind (a host's addresses of
one shape) is rendered as a trial. When that brings links or text which the page as it was sent does not have, pages
of the kind are rendered from then on; when it brings nothing, none is tried again. What was found is kept with the
crawl, so that each page's treatment can be explained. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from crawlspace.pages.shell import Looks

KINDS: Final = 1000
"""Kinds that are remembered; of more, the one found longest ago is forgotten, and tried again."""
LITTLE: Final = 200
"""Characters of text below which a page says next to nothing."""
SOME: Final = 600
"""Characters below which a page that asks for scripts is taken at its word."""
ENOUGH: Final = 5
"""Kinds of a host that were tried, all with the same end, after which no other is tried."""
FEW: Final = 2
"""Links below which a page leads next to nowhere."""


class RenderingSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which pages a browser renders (extra `browser`). A page is fetched first as any other; none without need."""

    rules: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=1000)], ...],
        Meta(description="Patterns of the addresses of pages that are rendered.", max_length=1000),
    ] = ()
    evidence: Annotated[
        bool,
        Meta(
            description="Render pages too whose kind needs it: an empty shell is tried once for each host and shape "
            "of address, and its kind is rendered if that brings links or text."
        ),
    ] = False

    @property
    def on(self) -> bool:
        """Whether any page may be rendered."""
        return self.evidence or bool(self.rules)


def why_shell(looks: Looks) -> str | None:
    """What speaks for trying a browser on a page, in words; None when nothing does."""
    if looks.scripts == 0:
        return None
    said = f"{looks.text} characters of text, {looks.links} links"
    if looks.root and looks.text < SOME:
        return f"an empty shell: {looks.root} waits to be filled, {said}"
    if looks.asks and looks.text < SOME:
        return f"an empty shell: it asks for scripts, {said}"
    if looks.text < LITTLE and looks.links < FEW:
        return f"an empty shell: {said}, {looks.scripts} scripts"
    return None


class Gain(NamedTuple):
    """What rendering brought to a page."""

    text: int
    """Characters of text before."""
    text_then: int
    links: int
    """Links before."""
    links_new: int
    """Links then that were not there before."""

    @property
    def is_worth_it(self) -> bool:
        """Whether the page was little without its scripts."""
        return self.links_new > 0 or self.text_then >= 2 * self.text + LITTLE

    def __str__(self) -> str:
        return f"{self.text_then} characters of text in place of {self.text}, {self.links_new} links more"


class PageKind(Struct, frozen=True):
    """What a trial has shown of a kind of pages."""

    renders: bool
    why: str
    """What spoke for the trial."""
    example: str
    """The page that was tried."""
    at: int
    brought: str
    """What rendering brought, in words."""

    def __str__(self) -> str:
        then = "rendered" if self.renders else "not rendered"
        return f"pages of this kind are {then}: {self.example} was tried ({self.why}) and brought {self.brought}"


class Memory(Struct, frozen=True):
    """What a crawl remembers of its rendering; kept as JSON."""

    kinds: dict[str, PageKind] = msgspec.field(default_factory=dict)
    """By host and shape of address."""
    pages: int = 0
    """Pages that a browser rendered."""
    failed: int = 0
    """Pages that it should have rendered and did not."""
    requests: int = 0
    """Requests that rendered pages made."""
    bytes: int = 0
    """Bytes that went over their connections."""

    def wants(self, host: str, shape: str) -> bool | None:
        """Whether pages of a kind are to be rendered; None: that must be tried.

        Hosts whose addresses are words have as many kinds as pages: some of one mind speak for the others.
        """
        known = self.kinds.get(kind_of(host, shape))
        if known is not None:
            return known.renders
        found = [each.renders for key, each in self.kinds.items() if key.startswith(f"{host} ")]
        if len(found) < ENOUGH or any(found) != all(found):
            return None
        return found[0]

    def with_kind(self, key: str, kind: PageKind) -> Memory:
        """With one kind more."""
        kinds = {**self.kinds, key: kind}
        while len(kinds) > KINDS:
            del kinds[min(kinds, key=lambda each: kinds[each].at)]
        return replace(self, kinds=kinds)

    def plus(self, more: Memory) -> Memory:
        """With what was counted elsewhere; kinds that both know stay as they are here."""
        added = replace(
            self,
            pages=self.pages + more.pages,
            failed=self.failed + more.failed,
            requests=self.requests + more.requests,
            bytes=self.bytes + more.bytes,
        )
        for key, kind in more.kinds.items():
            if key not in added.kinds:
                added = added.with_kind(key, kind)
        return added


FACT: Final = "rendering"
"""The fact of a crawl that holds it."""


def remembered(facts: Mapping[str, str]) -> Memory:
    """What a crawl remembers; nothing where it has rendered nothing."""
    text = facts.get(FACT)
    return Memory() if text is None else msgspec.json.decode(text, type=Memory)


def kind_of(host: str, shape: str) -> str:
    """The key of a kind of pages."""
    return f"{host} {shape}"
