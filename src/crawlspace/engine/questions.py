"""Questions to hosts about their rules of identity: one request each, at the host's pace.

Does a slash at the end of a path change a page? And does a rule that is applied still hold? Of the links that it
makes one with pages that are known, now and then one is asked for all the same: only so can evidence come up against
a rule that keeps its counter-examples from being fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from crawlspace.content.text import text_digest
from crawlspace.engine.fingerprints import Content
from crawlspace.exchange import FetchResult
from crawlspace.pages.links import Page, PageSettings
from crawlspace.policy.evidence import LearningSettings
from crawlspace.policy.learning import Learning
from crawlspace.types import Address, Relation, Unusable
from crawlspace.urls import Identity, host_name
from crawlspace.urls.variants import HostRule, RuleKind

WAITING: Final = 4
"""Questions that wait for one host, the latest."""
HOSTS: Final = 1000
"""Hosts for which questions wait."""
DIGEST: Final = 16
"""Bytes of a text's digest that are compared."""
_GONE: Final = (404, 410)


class _Question(NamedTuple):
    url: str
    canonical: str
    """The page that its answer is compared with."""
    rules: Sequence[HostRule]
    """Those that make the two one."""


class Questions:
    """What one run asks. It is an `Asker`."""

    def __init__(
        self,
        settings: LearningSettings,
        learning: Learning,
        identities: tuple[Identity, Identity],
        pages: PageSettings,
        allowed: Callable[[Address], bool],
    ) -> None:
        """`identities` are the crawl's as it is, and as it would be without its learned rules.

        `allowed` says whether scope lets an address be asked for.
        """
        self._settings = settings
        self._learning = learning
        self._identity, self._without = identities
        self._pages = pages
        self._allowed = allowed
        self._rules: Sequence[HostRule] = ()
        self._ruled: frozenset[str] = frozenset()
        self._waiting: dict[str, list[_Question]] = {}
        self._asked: dict[str, _Question] = {}
        self._probed: set[HostRule] = set()
        self._until = settings.checks // 2
        """Pages until one is looked at again."""

    def check(self, rules: Sequence[HostRule]) -> None:
        """The crawl is under these learned rules: links that they fold are to be checked now and then."""
        self._rules = rules
        self._ruled = frozenset(name for rule in rules for name in rule.names)

    @property
    def checks(self) -> bool:
        """Whether there is anything to check."""
        return bool(self._rules) and self._settings.checks > 0

    # -- what to ask ----------------------------------------------------------------------------------------

    def see_page(self, page: Page) -> None:
        """A page whose links may be worth a question."""
        self._until -= 1
        if self._until > 0 or page.nofollow:
            return
        texts = [link.url for link in page.links if link.relation is Relation.HYPERLINK and not link.nofollow]
        links = self._identity.identify_many(texts, page.base_url, encoding=page.charset)
        # The first link to a page is the one by which it is fetched: later ones are likelier to be spelled otherwise.
        found = any(self._wants(link) for link in reversed(links) if not isinstance(link, Unusable))
        self._until = self._settings.checks if found else self._settings.checks // 10

    def probe(self) -> None:
        """Ask about slashes where something speaks for a rule, once for each."""
        for candidate in self._learning.candidates():
            rule = candidate.rule
            if rule.kind is not RuleKind.SLASH or rule in self._probed or candidate.evidence.confirmed:
                continue
            if candidate.evidence.pairs and self._probe(rule):
                self._probed.add(rule)

    def _wants(self, link: Address) -> bool:
        """Whether a question about this link waits now."""
        question = self._about(link) if host_name(link.host) in self._ruled else None
        return question is not None and self._allowed(link) and self._put(link.host, question)

    def _about(self, link: Address) -> _Question | None:
        """The question whether a link leads where a rule says; None where no learned rule folds it."""
        plain = self._plain(link.fetch_url)
        if plain is None or plain == link.canonical or self._is_its_own(link.canonical, plain):
            return None
        rules = [rule for rule in self._rules if rule.form(plain) not in (None, plain)]
        return _Question(link.fetch_url, link.canonical, rules) if rules else None

    def _is_its_own(self, canonical: str, plain: str) -> bool:
        """Whether a page was asked for under this very address."""
        page = self._learning.known(canonical)
        return page is not None and self._plain(page.url) == plain

    def _plain(self, url: str) -> str | None:
        """The canonical form without learned rules."""
        address = self._without.identify(url)
        return None if isinstance(address, Unusable) else address.canonical

    def _probe(self, rule: HostRule) -> bool:
        for page in self._learning.pages_of(rule.host):
            parts = urlsplit(page.url)
            if not page.text or not page.weighty or parts.path in ("", "/") or "." in parts.path.rpartition("/")[2]:
                continue
            path = parts.path[:-1] if parts.path.endswith("/") else f"{parts.path}/"
            address = self._identity.identify(urlunsplit(parts._replace(path=path)))
            if isinstance(address, Unusable) or self._learning.known(address.canonical) is not None:
                continue
            if not self._allowed(address):
                continue
            return self._put(address.host, _Question(address.fetch_url, page.canonical, [rule]))
        return False

    def _put(self, host: str, question: _Question) -> bool:
        waiting = self._waiting.get(host)
        if waiting is None:
            if len(self._waiting) >= HOSTS:
                return False
            waiting = self._waiting[host] = []
        if question.url in self._asked or any(each.url == question.url for each in waiting):
            return False
        # What waits for a page that never came makes room.
        waiting[:] = [*waiting, question][-WAITING:]
        return True

    # -- asking ---------------------------------------------------------------------------------------------

    def question(self, host: str) -> str | None:
        """As `Asker` has it."""
        waiting = self._waiting.get(host, ())
        for question in list(waiting):
            page = self._learning.known(question.canonical)
            if page is None or not page.text:
                continue  # it was not fetched yet
            self._waiting[host].remove(question)
            if not self._is_its_own(question.canonical, self._plain(question.url) or ""):
                return self._ask(question)
        return None

    def _ask(self, question: _Question) -> str:
        if len(self._asked) >= HOSTS:
            self._asked.clear()  # those that robots rules did not let through
        self._asked[question.url] = question
        return question.url

    def answered(self, url: str, result: FetchResult) -> None:
        """As `Asker` has it."""
        question = self._asked.pop(url, None)
        same = None if question is None else self._is_same(question, result)
        if question is None or same is None:
            return
        for rule in question.rules:
            candidate = self._learning.candidate(rule)
            if candidate is not None and same:
                candidate.confirm()
            elif candidate is not None:
                candidate.speaks_against((url, question.canonical))

    def _is_same(self, question: _Question, result: FetchResult) -> bool | None:
        """Whether the answer is the page; None when it says nothing of that."""
        if result.status in _GONE:
            return False
        if 300 <= result.status < 400:
            target = self._identity.identify(result.headers.get("location"), result.url)
            if isinstance(target, Unusable):
                return None
            if target.canonical == question.canonical:
                return True
            return any(rule.form(target.canonical) == rule.form(question.canonical) for rule in question.rules)
        if result.error is not None or not 200 <= result.status < 300:
            return None
        try:
            text = Content.of(result, self._pages).text()
        except Exception:  # whatever a page does to us, it says nothing of the rule then
            return None
        page = self._learning.known(question.canonical)
        return None if page is None or not text else text_digest(text)[:DIGEST] == page.text
