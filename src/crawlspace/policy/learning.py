"""Rules of identity learned from what a crawl sees: evidence for, evidence against, and what follows from both.

Evidence for a rule are two addresses that only it keeps apart and that are one page: one redirects to the other, one
declares the other as its canonical, or both have the same text. Evidence against it are two addresses that it would
make one and that differ: in their text, in where they redirect to, or in that one of them is missing or forbidden. So
a rule that would merge two pages, or lose one behind a broken spelling of it, meets its counter-examples as the crawl
meets the pages.

All tables are bounded: the latest pages of the latest hosts are remembered, and of each rule the latest forms. What
falls out is evidence that is not found, never evidence that is wrong.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from crawlspace.policy.evidence import TEXTS, Evidence, Example, LearningSettings, RuleState, next_state
from crawlspace.urls.hosts import host_name
from crawlspace.urls.variants import HostRule, RuleKind, looks_random, variants

PAGES_OF_HOST: Final = 500
PAGES: Final = 50_000
"""Pages remembered in all; hosts that were seen longest ago are forgotten first."""
CANDIDATES: Final = 1000
"""Rules whose evidence is gathered at once; those seen longest ago give way."""
OF_HOST: Final = 32
"""Rules of one host that are looked into at once."""
FORMS: Final = 200
"""Pages of a rule that new ones are compared with."""
ALIKE: Final = 4
"""Pages with one text that a new one with that text is compared with."""
EXAMPLES: Final = 3
_MAIN: Final = b"main "
"""Before digests of what pages say without what stands around it: no such digest is that of a whole text."""
_MISSING: Final = b"missing"
_FORBIDDEN: Final = b"forbidden"


class Sighting(NamedTuple):
    """What became of one fetched address."""

    canonical: str
    text: bytes = b""
    """Digest of what it says; empty when it says nothing of itself."""
    weighty: bool = True
    """It says enough for equal texts to mean something."""
    links: bytes = b""
    """Digest of where its links lead."""
    declared: str | None = None
    """The canonical form of what it declares as its address."""
    target: str | None = None
    """The canonical form of where it redirects to."""
    url: str = ""
    """What was requested."""
    main: bytes = b""
    """Digest of what it says without what stands around it, where that was asked."""

    @property
    def weighs(self) -> list[bytes]:
        """The keys under which pages that say the same are found."""
        return [key for key in (self.text, self.main and _MAIN + self.main) if key and self.weighty]

    @classmethod
    def missing(cls, canonical: str) -> Sighting:
        """There is no such page."""
        return cls(canonical, _MISSING, weighty=False)

    @classmethod
    def forbidden(cls, canonical: str) -> Sighting:
        """Robots rules forbid it."""
        return cls(canonical, _FORBIDDEN, weighty=False)


@dataclass(slots=True)
class Candidate:
    """One rule, and what is known for and against it."""

    rule: HostRule
    state: RuleState = RuleState.WATCHED
    evidence: Evidence = field(default_factory=Evidence)
    unsaved: Evidence = field(default_factory=Evidence)
    """The part of the evidence that is not stored yet."""
    moved: bool = False
    """Its state is not stored yet."""
    examples: list[Example] = field(default_factory=list)
    against: list[Example] = field(default_factory=list)
    _forms: dict[str, tuple[str, bytes, bytes]] = field(default_factory=dict)
    _kinds: set[bytes] = field(default_factory=set)

    def speaks_for(self, evidence: Evidence, example: Example, kind: bytes) -> None:
        """One pair more."""
        if len(self._kinds) < TEXTS:
            self._kinds.add(kind)
        random = int(looks_random(self.rule, *example))
        self._add(evidence._replace(kinds=len(self._kinds), random=random))
        if len(self.examples) < EXAMPLES:
            self.examples.append(example)

    def speaks_against(self, example: Example) -> None:
        """One counter-example."""
        self._add(Evidence(against=1))
        if len(self.against) < EXAMPLES:
            self.against.append(example)

    def confirm(self) -> None:
        """An answer to a question of our own speaks for it."""
        self._add(Evidence(confirmed=1))

    def compare(self, sighting: Sighting, *, changed: bool = False) -> None:
        """Hold a page against the others that the rule would make one with it.

        A page that changed since it was seen last stands in for what it was: the others may have changed as well.
        """
        canonical, value = sighting.canonical, sighting.text
        if self.rule.kind is RuleKind.VIEW and value not in (_MISSING, _FORBIDDEN) and sighting.target is None:
            # Views differ in what stands around; a page of which nothing else is known says nothing of them.
            value = sighting.main
            if not value:
                return
        form = self.rule.form(canonical) or canonical
        if sighting.target is not None:
            if self.rule.form(sighting.target) == form:
                return
            value = b">" + sighting.target.encode()
        known = self._forms.get(form)
        if known is None or changed or known[0] == canonical:
            if known is None and len(self._forms) >= FORMS:
                del self._forms[next(iter(self._forms))]
            self._forms[form] = canonical, value, sighting.links
        elif known[1] != value:
            self.speaks_against((known[0], canonical))
        elif sighting.weighty and sighting.target is None:
            unlike = int(known[2] != sighting.links)
            self.speaks_for(Evidence(texts=1, unlike=unlike), (canonical, known[0]), value)

    def _add(self, evidence: Evidence) -> None:
        self.evidence = self.evidence.plus(evidence)
        self.unsaved = self.unsaved.plus(evidence)


@dataclass(slots=True)
class _Host:
    """The latest pages of a host."""

    pages: OrderedDict[str, Sighting] = field(default_factory=OrderedDict)
    by_text: dict[bytes, list[str]] = field(default_factory=dict)

    def put(self, sighting: Sighting) -> int:
        """Remember a page; how many more there are now."""
        before = len(self.pages)
        self._forget(self.pages.pop(sighting.canonical, None))
        self.pages[sighting.canonical] = sighting
        for key in sighting.weighs:
            alike = self.by_text.setdefault(key, [])
            alike[:] = [*alike, sighting.canonical][-ALIKE:]
        if len(self.pages) > PAGES_OF_HOST:
            self._forget(self.pages.popitem(last=False)[1])
        return len(self.pages) - before

    def _forget(self, page: Sighting | None) -> None:
        for key in () if page is None else page.weighs:
            alike = [each for each in self.by_text.pop(key, ()) if page is not None and each != page.canonical]
            if alike:
                self.by_text[key] = alike


class Learning:
    """The evidence that one process gathers. Its work for a page is bounded."""

    def __init__(self, settings: LearningSettings) -> None:
        self.settings = settings
        self._hosts: OrderedDict[str, _Host] = OrderedDict()
        self._pages = 0
        self._everywhere: OrderedDict[bytes, str] = OrderedDict()
        """The latest page with each text, whatever its host: for mirrors."""
        self._candidates: OrderedDict[HostRule, Candidate] = OrderedDict()
        self._of_name: dict[str, list[Candidate]] = {}

    def restore(self, rule: HostRule, state: RuleState, evidence: Evidence) -> None:
        """Go on with what is stored of a rule. What was seen since the last time it was stored stays."""
        candidate = self._candidates.get(rule)
        if candidate is None:
            candidate = self._begin(rule)
        candidate.evidence = evidence.plus(candidate.unsaved)
        if not candidate.moved:
            candidate.state = state

    def candidates(self) -> Iterator[Candidate]:
        """All rules that are looked into."""
        yield from self._candidates.values()

    def known(self, canonical: str) -> Sighting | None:
        """What was seen of a canonical URL lately."""
        host = self._hosts.get(host_name(canonical))
        return None if host is None else host.pages.get(canonical)

    def pages_of(self, name: str) -> Iterable[Sighting]:
        """A host's latest pages, the latest first."""
        host = self._hosts.get(name)
        return () if host is None else reversed(host.pages.values())

    def candidate(self, rule: HostRule) -> Candidate | None:
        """What is gathered of a rule; None when nothing is."""
        return self._candidates.get(rule)

    def see(self, sighting: Sighting) -> None:
        """Learn from one fetched address."""
        for rule, evidence, example, kind in self._pairs(sighting):
            if rule.kind is RuleKind.MIRROR and not all(name in self._hosts for name in rule.names):
                continue  # a host of which nothing was fetched may be one that the crawl never enters
            self._candidate(rule).speaks_for(evidence, example, kind)
        for rule in self._alike(sighting):
            self._candidate(rule)
        self._compare(sighting)
        self._remember(sighting)

    def recall(self, pages: Iterable[Sighting], form: Callable[[str], str]) -> None:
        """Remember pages that were seen before, under the forms of today, without counting them again."""
        for page in pages:
            target = page.target if page.target is None else form(page.target)
            known = page._replace(canonical=form(page.canonical), target=target)
            for candidate in self._of_name.get(host_name(known.canonical), ()):
                candidate.compare(known, changed=True)
            self._remember(known)

    def pages(self) -> Iterator[Sighting]:
        """All pages that are remembered, those of each host in order."""
        for host in self._hosts.values():
            yield from host.pages.values()

    def judge(self) -> list[Candidate]:
        """Rules whose state follows to another one from what is known; they are in it then."""
        moved = []
        for candidate in self._candidates.values():
            state = next_state(candidate.state, candidate.evidence, self.settings)
            if state is not candidate.state:
                candidate.state = state
                candidate.moved = True
                moved.append(candidate)
        return moved

    # -- evidence -------------------------------------------------------------------------------------------

    def _pairs(self, sighting: Sighting) -> Iterator[tuple[HostRule, Evidence, Example, bytes]]:
        """What a page says itself: where it redirects to, and what it declares."""
        own = sighting.canonical
        if sighting.target is not None:
            for rule in variants(own, sighting.target):
                yield rule, Evidence(redirects=1), (own, sighting.target), sighting.target.encode()
        elif sighting.declared is not None and sighting.declared != own:
            for rule in variants(own, sighting.declared):
                yield rule, Evidence(canonicals=1), (own, sighting.declared), sighting.declared.encode()

    def _alike(self, sighting: Sighting) -> set[HostRule]:
        """Rules that would make the page one with others that say the same; comparing counts them."""
        if not sighting.weighty or not sighting.text or sighting.target is not None:
            return set()
        own = sighting.canonical
        host = self._hosts.get(host_name(own))
        by_text: dict[bytes, list[str]] = {} if host is None else host.by_text
        elsewhere = self._everywhere.get(sighting.text)
        pairs = [*by_text.get(sighting.text, ()), *([] if elsewhere is None else [elsewhere])]
        found = {rule for other in pairs if other != own for rule in variants(own, other)}
        views = (rule for other in by_text.get(_MAIN + sighting.main, ()) for rule in variants(own, other))
        return found | {rule for rule in views if rule.kind is RuleKind.VIEW}

    def _compare(self, sighting: Sighting) -> None:
        if not sighting.text and sighting.target is None:
            return
        before = self.known(sighting.canonical)
        changed = before is not None and (before.text, before.target) != (sighting.text, sighting.target)
        for candidate in self._of_name.get(host_name(sighting.canonical), ()):
            candidate.compare(sighting, changed=changed)
            self._candidates.move_to_end(candidate.rule)

    def _remember(self, sighting: Sighting) -> None:
        name = host_name(sighting.canonical)
        if name not in self._hosts:
            self._hosts[name] = _Host()
        self._hosts.move_to_end(name)
        self._pages += self._hosts[name].put(sighting)
        while self._pages > PAGES:
            self._pages -= len(self._hosts.popitem(last=False)[1].pages)
        if sighting.weighty and sighting.text:
            self._everywhere[sighting.text] = sighting.canonical
            self._everywhere.move_to_end(sighting.text)
            if len(self._everywhere) > PAGES:
                self._everywhere.popitem(last=False)

    # -- candidates -----------------------------------------------------------------------------------------

    def _candidate(self, rule: HostRule) -> Candidate:
        """The rule's candidate, begun if it is new."""
        return self._candidates.get(rule) or self._begin(rule)

    def _begin(self, rule: HostRule) -> Candidate:
        """A new candidate, which looks at what is remembered of its hosts first."""
        candidate = self._candidates[rule] = Candidate(rule)
        for name in rule.names:
            waiting = self._of_name.setdefault(name, [])
            waiting.append(candidate)
            if len(waiting) > OF_HOST:
                self._drop(min(waiting[:-1], key=_worth))
            for sighting in self._hosts[name].pages.values() if name in self._hosts else ():
                candidate.compare(sighting)
        if len(self._candidates) > CANDIDATES:
            self._drop(next(iter(self._candidates.values())))
        return candidate

    def _drop(self, candidate: Candidate) -> None:
        self._candidates.pop(candidate.rule, None)
        for name in candidate.rule.names:
            left = [each for each in self._of_name.get(name, ()) if each is not candidate]
            if left:
                self._of_name[name] = left
            else:
                self._of_name.pop(name, None)


def _worth(candidate: Candidate) -> tuple[bool, int]:
    """Rules that a person or the crawl decided on stay longest."""
    return candidate.state is not RuleState.WATCHED, candidate.evidence.pairs
