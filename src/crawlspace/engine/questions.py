"""Questions to hosts about their rules of identity: one request each, at the host's pace.

Does a slash at the end of a path change a page? And does a rule that is applied still hold? Of the links that it
makes one with pages that are known, now and then one is asked for all the same: only so can evidence come up against
a rule that keeps its counter-examples from being fetched.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from crawlspace.content.text import text_digest
from crawlspace.engine.fingerprints import Content
from crawlspace.exchange import FetchResult
from crawlspace.pages.links import PageSettings
from crawlspace.policy.evidence import LearningSettings
from crawlspace.policy.learning import Learning, Sighting
from crawlspace.types import Address, Unusable
from crawlspace.urls import Identity, host_name
from crawlspace.urls.variants import HostRule, RuleKind

WAITING: Final = 4
"""Questions that wait for one host; further ones are not asked."""
HOSTS: Final = 1000
"""Hosts for which questions wait."""
DIGEST: Final = 16
"""Bytes of a text's digest that are compared."""
_GONE: Final = (404, 410)


class _Question(NamedTuple):
    url: str
    page: Sighting
    """What the answer is compared with."""
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
    ) -> None:
        """`identities` are the crawl's as it is, and as it would be without its learned rules."""
        self._settings = settings
        self._learning = learning
        self._identity, self._without = identities
        self._pages = pages
        self._rules: Sequence[HostRule] = ()
        self._ruled: frozenset[str] = frozenset()
        self._waiting: dict[str, deque[_Question]] = {}
        self._asked: dict[str, _Question] = {}
        self._probed: set[HostRule] = set()
        self._seen = settings.checks // 2

    def check(self, rules: Sequence[HostRule]) -> None:
        """The crawl is under these learned rules: links that they fold are to be checked now and then."""
        self._rules = rules
        self._ruled = frozenset(name for rule in rules for name in rule.names)

    @property
    def checks(self) -> bool:
        """Whether there is anything to check."""
        return bool(self._rules) and self._settings.checks > 0

    # -- what to ask ----------------------------------------------------------------------------------------

    def see_links(self, links: Iterable[Address]) -> None:
        """The links of a page, under the crawl's rules."""
        ours = [link for link in links if host_name(link.host) in self._ruled]
        if not ours:
            return
        self._seen += 1
        if self._seen % self._settings.checks:
            return
        for link in ours:
            question = self._about(link)
            if question is not None and self._put(link.host, question):
                return
        self._seen -= 1  # no link of this page is one to ask for: the next page is looked at

    def probe(self) -> None:
        """Ask about slashes where enough speaks for a rule that nobody confirmed."""
        for candidate in self._learning.candidates():
            rule = candidate.rule
            if rule.kind is not RuleKind.SLASH or rule in self._probed or candidate.evidence.confirmed:
                continue
            if candidate.evidence.pairs >= self._settings.pairs and self._probe(rule):
                self._probed.add(rule)

    def _about(self, link: Address) -> _Question | None:
        """The question whether a link leads where a rule says; None where no learned rule folds it."""
        plain = self._without.identify(link.fetch_url)
        page = self._learning.known(link.canonical)
        if isinstance(plain, Unusable) or plain.canonical == link.canonical or page is None or not page.url:
            return None
        asked = self._without.identify(page.url)
        if isinstance(asked, Unusable) or asked.canonical == plain.canonical:
            return None  # that is how the page was asked for
        rules = [rule for rule in self._rules if rule.form(plain.canonical) not in (None, plain.canonical)]
        return _Question(link.fetch_url, page, rules) if rules else None

    def _probe(self, rule: HostRule) -> bool:
        for page in self._learning.pages_of(rule.host):
            parts = urlsplit(page.url)
            if not page.text or not page.weighty or parts.path in ("", "/") or "." in parts.path.rpartition("/")[2]:
                continue
            path = parts.path[:-1] if parts.path.endswith("/") else f"{parts.path}/"
            address = self._identity.identify(urlunsplit(parts._replace(path=path)))
            if isinstance(address, Unusable) or self._learning.known(address.canonical) is not None:
                continue
            return self._put(address.host, _Question(address.fetch_url, page, [rule]))
        return False

    def _put(self, host: str, question: _Question) -> bool:
        waiting = self._waiting.get(host)
        if waiting is None:
            if len(self._waiting) >= HOSTS:
                return False
            waiting = self._waiting[host] = deque()
        if len(waiting) >= WAITING or question.url in self._asked:
            return False
        waiting.append(question)
        return True

    # -- asking ---------------------------------------------------------------------------------------------

    def question(self, host: str) -> str | None:
        """As `Asker` has it."""
        waiting = self._waiting.get(host)
        if not waiting:
            return None
        question = waiting.popleft()
        if not waiting:
            del self._waiting[host]
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
                candidate.speaks_against((url, question.page.canonical))

    def _is_same(self, question: _Question, result: FetchResult) -> bool | None:
        """Whether the answer is the page; None when it says nothing of that."""
        if result.status in _GONE:
            return False
        if 300 <= result.status < 400:
            target = self._identity.identify(result.headers.get("location"), result.url)
            if isinstance(target, Unusable):
                return None
            if target.canonical == question.page.canonical:
                return True
            return any(rule.form(target.canonical) == rule.form(question.page.canonical) for rule in question.rules)
        if result.error is not None or not 200 <= result.status < 300:
            return None
        try:
            text = Content.of(result, self._pages).text()
        except Exception:  # whatever a page does to us, it says nothing of the rule then
            return None
        return text_digest(text)[:DIGEST] == question.page.text if text else None
