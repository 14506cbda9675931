"""The parser `markdown`: a page's main part as Markdown, for people and programs that read it as text.

The main part is the page's `main` element, or its only `article`, or else its body without navigation, headers and
footers. Text of the page never becomes markup: what Markdown would read as such is escaped. One pass over the tree
without recursion, so that no page is nested too deep for it.

Source: CommonMark 0.31, with the tables of GitHub's flavour.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from selectolax.lexbor import LexborNode

from crawlspace.parsers.definition import Match, parser
from crawlspace.parsers.document import Document
from crawlspace.parsers.records import PAGE_KEY

TEXT_LIMIT: Final = 4 << 20
"""Characters of Markdown that one page gives."""
INDENTED: Final = 16
"""Lists and quotations within each other that are still shown as such."""

_LEFT_OUT: Final = frozenset(
    {
        *("script", "style", "template", "noscript", "nav", "aside", "form", "button", "select", "iframe", "svg"),
        *("head", "canvas", "audio", "video", "object", "dialog"),
    }
)
_FRAMES: Final = frozenset({"header", "footer"})
"""Left out of a body, not of an article."""
_BLOCKS: Final = frozenset(
    {
        *("p", "div", "section", "article", "main", "figure", "figcaption", "address", "details", "summary", "dl"),
        *("dt", "dd", "header", "footer", "ul", "ol", "table", "body", "fieldset", "center", "hgroup"),
    }
)
_HEADINGS: Final = {f"h{level}": "#" * level for level in range(1, 7)}
_MARKS: Final = {"strong": "**", "b": "**", "em": "*", "i": "*"}
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>|~])")
_AT_START: Final = re.compile(r"^(\s*)([#+=-]|\d{1,9}[.)])")
_SPACE: Final = re.compile(r"\s+")
_FENCE: Final = re.compile(r"`{3,}")


@parser("markdown", 1, match=Match.of(type="html"), key=PAGE_KEY)
def markdown(page: Document) -> dict[str, str]:
    """The record of one page."""
    root, whole = _main_part(page)
    text = "" if root is None else _Writer(page).write(root, whole=whole)
    return {"title": page.title, "markdown": text}


def _main_part(page: Document) -> tuple[LexborNode | None, bool]:
    """The element that holds the page's own text, and whether that is the whole body."""
    main = page.first("main,[role=main]")
    if main is not None:
        return main, False
    articles = page.css("article")
    return (articles[0], False) if len(articles) == 1 else (page.tree.body, True)


class _Writer:
    """One page being written."""

    def __init__(self, page: Document) -> None:
        self._page = page
        self._blocks: list[str] = []
        self._line: list[str] = []
        self._lists: list[int | None] = []
        """Open lists: the number of the next item, or None where items have bullets."""
        self._quotes = 0
        self._lead = ""
        """What the next block begins with: a heading's mark or a list's."""
        self._links: list[tuple[int, str]] = []
        self._row: list[str] | None = None
        self._size = 0

    def write(self, root: LexborNode, *, whole: bool) -> str:
        left_out = _LEFT_OUT | _FRAMES if whole else _LEFT_OUT
        for node, opens in _walk(root, left_out):
            if self._size > TEXT_LIMIT:
                break
            if opens:
                self._open(node)
            else:
                self._close(node)
        self._end_block()
        return "\n\n".join(self._blocks).replace("\n\n|", "\n|").strip()

    def _open(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if tag == "-text":
            self._line.append(_escaped(_SPACE.sub(" ", node.text(deep=False))))
        elif tag in _MARKS:
            self._line.append(_MARKS[tag])
        elif tag in _OPENERS:
            _OPENERS[tag](self, node)
        elif tag in _HEADINGS:
            self._end_block()
            self._lead = f"{_HEADINGS[tag]} "
        elif tag in _BLOCKS:
            self._end_block()

    def _close(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if tag in _MARKS:
            self._unmark(_MARKS[tag])
        elif tag in _CLOSERS:
            _CLOSERS[tag](self, node)
        elif tag in _HEADINGS or tag in _BLOCKS:
            self._end_block()

    # -- elements -------------------------------------------------------------------------------------------

    def _unmark(self, mark: str) -> None:
        """Close a mark; one with nothing in it goes, and blanks move out of it."""
        if mark not in self._line:
            return
        start = len(self._line) - 1 - self._line[::-1].index(mark)
        inner = "".join(self._line[start + 1 :])
        del self._line[start:]
        bare = inner.strip()
        if bare:
            before, after = inner[: len(inner) - len(inner.lstrip())], inner[len(inner.rstrip()) :]
            self._line.append(f"{before}{mark}{bare}{mark}{after}")
        else:
            self._line.append(inner)

    def _open_link(self, node: LexborNode) -> None:
        self._links.append((len(self._line), node.attributes.get("href") or ""))

    def _close_link(self, _: LexborNode) -> None:
        if not self._links:
            return
        start, href = self._links.pop()
        text = "".join(self._line[start:])
        target = self._page.resolve(href) if href and not href.startswith("#") else None
        if target is None or not text.strip():
            return
        self._line[start:] = [f"[{text.strip()}]({target.replace('(', '%28').replace(')', '%29')})"]

    def _image(self, node: LexborNode) -> None:
        alt = _SPACE.sub(" ", node.attributes.get("alt") or "").strip()
        target = self._page.resolve(node.attributes.get("src") or "")
        if alt and target is not None:
            self._line.append(f"![{_escaped(alt)}]({target.replace('(', '%28').replace(')', '%29')})")

    def _break(self, _: LexborNode) -> None:
        self._line.append("\\\n")

    def _rule(self, _: LexborNode) -> None:
        self._end_block()
        self._add("---")

    def _code(self, node: LexborNode) -> None:
        text = _SPACE.sub(" ", node.text()).strip()
        if text:
            fence = "``" if "`" in text else "`"
            pad = " " if "`" in text else ""
            self._line.append(f"{fence}{pad}{text}{pad}{fence}")

    def _pre(self, node: LexborNode) -> None:
        self._end_block()
        text = node.text().strip("\n")
        if text.strip():
            longest = max((len(run) for run in _FENCE.findall(text)), default=2)
            fence = "`" * (longest + 1)
            self._add(f"{fence}\n{text}\n{fence}")

    def _open_list(self, node: LexborNode) -> None:
        self._end_block()
        self._lists.append(1 if node.tag == "ol" else None)

    def _close_list(self, _: LexborNode) -> None:
        self._end_block()
        if self._lists:
            self._lists.pop()

    def _open_item(self, _: LexborNode) -> None:
        self._end_block()
        number = self._lists[-1] if self._lists else None
        self._lead = "- " if number is None else f"{number}. "
        if number is not None:
            self._lists[-1] = number + 1

    def _close_item(self, _: LexborNode) -> None:
        self._end_block()
        self._lead = ""

    def _open_quote(self, _: LexborNode) -> None:
        self._end_block()
        self._quotes += 1

    def _close_quote(self, _: LexborNode) -> None:
        self._end_block()
        self._quotes -= 1

    def _open_row(self, _: LexborNode) -> None:
        self._end_block()
        self._row = []

    def _close_cell(self, _: LexborNode) -> None:
        if self._row is not None:
            self._row.append(_SPACE.sub(" ", "".join(self._line).replace("\\\n", " ")).strip())
            self._line.clear()
            self._links.clear()

    def _close_row(self, _: LexborNode) -> None:
        row, self._row = self._row, None
        if not row:
            return
        begins = not (self._blocks and self._blocks[-1].startswith("|"))
        self._add(f"| {' | '.join(row)} |")
        if begins:
            self._add(f"|{' --- |' * len(row)}")

    # -- blocks ---------------------------------------------------------------------------------------------

    def _end_block(self) -> None:
        text = "".join(self._line)
        self._line.clear()
        self._links.clear()
        if self._row is not None:
            self._line.append(text)  # blocks within a cell are one line
            return
        lines = [line.strip() for line in _SPACE_BUT_BREAKS.sub(" ", _OUTER.sub("", text)).split("\n")]
        if any(lines):
            lead, self._lead = self._lead, ""
            if not lead:
                lines[0] = _AT_START.sub(r"\1\\\2", lines[0])
            self._add(lead + "\n".join(lines))

    def _add(self, text: str) -> None:
        depth = min(len(self._lists), INDENTED)
        is_item = depth and re.match(r"- |\d+\. ", text)
        indent = "  " * (depth - 1 if is_item else depth)
        prefix = "> " * min(self._quotes, INDENTED)
        block = "\n".join(f"{prefix}{indent}{line}" for line in text.split("\n"))
        self._blocks.append(block)
        self._size += len(block)


_SPACE_BUT_BREAKS: Final = re.compile(r"[^\S\n]+")
_OUTER: Final = re.compile(r"\A(?:\\\n|\s)+|(?:\\\n|\s)+\Z")
"""Blanks and line breaks at the ends of a block."""

_OPENERS: Final = {
    "a": _Writer._open_link,
    "img": _Writer._image,
    "br": _Writer._break,
    "hr": _Writer._rule,
    "code": _Writer._code,
    "pre": _Writer._pre,
    "ul": _Writer._open_list,
    "ol": _Writer._open_list,
    "li": _Writer._open_item,
    "blockquote": _Writer._open_quote,
    "tr": _Writer._open_row,
}
_CLOSERS: Final = {
    "a": _Writer._close_link,
    "ul": _Writer._close_list,
    "ol": _Writer._close_list,
    "li": _Writer._close_item,
    "blockquote": _Writer._close_quote,
    "td": _Writer._close_cell,
    "th": _Writer._close_cell,
    "tr": _Writer._close_row,
}
_WHOLE: Final = frozenset({"code", "pre", "img", "br", "hr"})
"""Elements whose inside is not walked."""


def _walk(root: LexborNode, left_out: frozenset[str]) -> Iterator[tuple[LexborNode, bool]]:
    """Every element and text below `root`, as it opens and as it closes."""
    node: LexborNode | None = root
    depth = 0
    while node is not None:
        tag = node.tag or ""
        skipped = tag in left_out and depth > 0
        if not skipped:
            yield node, True
        child = None if skipped or tag in _WHOLE else _first_child(node)
        if child is not None:
            node, depth = child, depth + 1
            continue
        if not skipped:
            yield node, False
        while node is not None and depth > 0 and node.next is None:
            node, depth = node.parent, depth - 1
            if node is not None:
                yield node, False
        node = node.next if node is not None and depth > 0 else None


def _first_child(node: LexborNode) -> LexborNode | None:
    return node.first_child


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
