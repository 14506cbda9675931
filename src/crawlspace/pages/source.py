"""The markup of a page: scanned for what a crawl asks of it, and made a tree of for those who look further."""

from __future__ import annotations

from crawlspace.pages.encoding import as_utf8
from crawlspace.pages.scan import scan
from crawlspace.pages.scanning import Scan
from crawlspace.pages.tree import Tree, may_cost_too_much, parse


class Source:
    """One page's markup. Its scan and its tree are made when they are first asked for, and once."""

    __slots__ = ("_body", "_bounded", "_may_cost", "_scan", "_tree", "_wants_text", "charset")

    def __init__(self, body: bytes, charset: str, *, wants_text: bool = False, bounded: bool = True) -> None:
        """`body` as it was sent, in `charset`.

        `wants_text` says that the text will be asked for, which is read with the links then; `bounded` is as in
        `tree.parse`.
        """
        self.charset = charset
        self._body = as_utf8(body, charset)
        self._wants_text = wants_text
        self._bounded = bounded
        self._scan: Scan | None = None
        self._may_cost: bool | None = None
        self._tree: Tree | None = None

    def scan(self, max_links: int) -> Scan:
        """What the page says, with its first `max_links` links and one; the first who asks says how many."""
        if self._scan is None:
            self._scan = scan(self._body, max_links, text=self._wants_text)
        return self._scan

    @property
    def text(self) -> bytes:
        """What a reader sees, in UTF-8 with white space folded: see `scanning`."""
        found = self._scan
        if found is None or found.text is None:
            found = scan(self._body, 0)
        return found.text or b""

    @property
    def may_cost_too_much(self) -> bool:
        """As of `tree.may_cost_too_much`; looked at once for all who ask."""
        if self._may_cost is None:
            self._may_cost = may_cost_too_much(self._body)
        return self._may_cost

    @property
    def tree(self) -> Tree:
        """The page's tree, the same for all who ask."""
        if self._tree is None:
            bounded = self._bounded and self.may_cost_too_much
            self._tree = parse(self._body, self.charset, bounded=bounded)
        return self._tree
