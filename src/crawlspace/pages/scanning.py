"""A page's links, declarations and text in one pass over its bytes, without a tree.

A crawl asks three things of every page: where it leads, what it says of itself, and what a reader sees. All three
stand in the tags and the text between them, in the order of the page, so that a tree, which costs three times as
much as all the rest, tells nothing more of them; but for pages in whose tree a tag is not what it seems. Those are
marked as odd, and their links are read from a tree.

The text is defined here, for odd pages too: what stands outside of tags, comments, scripts, styles, templates and
embedded frames, with a blank where any of these stood and white space (HTML's own and no-break spaces) folded.

This module is the reference and works everywhere. `_scan.c` does the same twenty times as fast where it was
compiled; `scan.py` takes the one that is there.

Sources: HTML Standard, "tokenization", "parsing HTML documents".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.entities import html5
from typing import Final, NamedTuple

Attributes = Mapping[str, str]


class Anchor(NamedTuple):
    """A hyperlink: an `a` or `area` with an address that may be one of http or https."""

    address: str
    """Without its fragment and the blanks around it."""
    nofollow: bool
    """Every link of the page to this address says so."""


class Declaration(NamedTuple):
    """An element that declares something, or embeds a page: `base`, `link`, `meta`, `iframe`."""

    tag: str
    attributes: Attributes
    """Those that are read of it, the first of each name; its main one is among them."""
    in_head: bool


class Scan(NamedTuple):
    """What was read of a page."""

    events: list[tuple[str, bool] | tuple[str, Attributes, bool]]
    """`Anchor` and `Declaration` in the order of the page, as bare tuples; each address of an anchor once."""
    cut: bool
    """There are more than were taken."""
    title: str | None
    language: str | None
    """What its root element says."""
    text: bytes | None
    """In UTF-8; None when it was not asked for."""
    odd: bool
    """Its links are those of its tree: a tag may not count, or be text, by where it stands."""


DECLARATIONS_LIMIT: Final = 50_000
"""Declarations that are taken from a page: 20 MB of memory."""

_READ: Final[Mapping[bytes, tuple[bytes, ...]]] = {
    b"base": (b"href",),
    b"iframe": (b"src",),
    b"link": (b"href", b"rel", b"hreflang", b"type"),
    b"meta": (b"content", b"name", b"http-equiv"),
}
"""What is read of declarations; without the first there is nothing to say."""
_IN_HEAD: Final = frozenset(
    b"base basefont bgsound head html link meta noframes noscript script style template title".split()
)
_RAW: Final = frozenset(b"script style title textarea xmp iframe noembed noframes".split())
_WITH_REFERENCES: Final = frozenset({b"title", b"textarea"})
_ODD: Final = frozenset(b"plaintext frameset frame noframes template".split())
_ODD_IN_SELECT: Final = frozenset(b"a area iframe math noembed svg xmp base html link meta style title".split())
_END_SELECT: Final = frozenset(b"input keygen textarea".split())

_BLANK: Final = rb"\t\n\f\r "
_EDGE: Final = "".join(map(chr, range(0x21)))
_HARD_SPACE: Final = "\u00a0".encode()
_END_OF_NAME: Final = rb"(?=[" + _BLANK + rb"/>])"
_REST: Final = (
    rb"(?:[" + _BLANK + rb"/]++|[^" + _BLANK + rb"/>][^" + _BLANK + rb"/>=]*+(?:"
    rb"[" + _BLANK + rb"]*+=[" + _BLANK + rb"]*+"
    rb"(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^" + _BLANK + rb">\"'][^" + _BLANK + rb">]*+|(?=>|\Z)))?+)*+"
)
_MARKUP: Final = re.compile(
    rb"<(?:(/?)([A-Za-z][^" + _BLANK + rb"/>]*+)(" + _REST + rb")(>|\Z)"
    rb"|!--(?:-?>|[^-]*+(?:-(?!-!?>)[^-]*+)*+(?:--!?>|\Z))"
    rb"|(?:[!?]|/(?![A-Za-z])(?!\Z))[^>]*+(?:>|\Z))"
)
"""A tag with its name and attributes, or a comment, or what is taken for one.

A tag in which the page ends has no `>`, and is none.
"""
_TOLD_ENDS: Final = (b"math", b"select", b"svg", b"template")
_TOLD_STARTS: Final = sorted({*_READ, *_IN_HEAD, *_RAW, *_ODD, *_ODD_IN_SELECT, *_END_SELECT, *_TOLD_ENDS})
_IDLE_TAG: Final = (
    rb"<(?:/(?!(?:" + b"|".join(_TOLD_ENDS) + rb")" + _END_OF_NAME + rb")"
    rb"|(?!(?:"
    + b"|".join(_TOLD_STARTS)
    + rb")"
    + _END_OF_NAME
    + rb"))[a-z][a-z0-9-]*+"
    + _END_OF_NAME
    + _REST
    + rb">"
)
_IDLE: Final = re.compile(_IDLE_TAG)
"""A tag, plainly spelled, that only parts the text in a page's body: most are such."""
_IDLY: Final = re.compile(rb"(?:[^<]++|" + _IDLE_TAG + rb")*+")
"""Text and such tags, passed in one go."""
_ATTRIBUTE: Final = re.compile(
    rb"([^" + _BLANK + rb"/>][^" + _BLANK + rb"/>=]*+)"
    rb"(?:[" + _BLANK + rb"]*+=[" + _BLANK + rb"]*+"
    rb"(?:\"([^\"]*+)\"|'([^']*+)'|([^" + _BLANK + rb">\"'][^" + _BLANK + rb">]*+)|(?=>|\Z)))?+"
)
_IN_SCRIPT: Final = re.compile(rb"<!(?=--)|-->|<(/?)script" + _END_OF_NAME, re.I)
_ENDS: Final = {name: re.compile(b"</" + name + _END_OF_NAME, re.I) for name in _RAW}
_PLAIN, _IN_COMMENT, _IN_INNER_SCRIPT = range(3)
"""Where in a script one is."""
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_REFERENCE: Final = re.compile(r"&(?:#([xX][0-9A-Fa-f]++|[0-9]++);?|([A-Za-z0-9]{1,32}+)(;?))")
_LEGACY: Final = 6
"""Letters of the longest name that is read without its semicolon."""
_MOST_UNICODE: Final = 0x10FFFF
_REPLACEMENT: Final = "\ufffd"


def scan(body: bytes, max_links: int, wants_text: bool, /) -> Scan:
    """What a page says. `body` is UTF-8 without NUL; no more than `max_links` and one anchors are taken."""
    scanning = _Scanning(body, max_links)
    scanning.run()
    text = None
    if wants_text:
        words = b"".join(scanning.pieces).replace(_HARD_SPACE, b" ").split()
        text = b" ".join(words)
    odd = scanning.odd or (scanning.drawn_title and scanning.title is None)
    return Scan(scanning.events, scanning.cut, scanning.title, scanning.language, text, odd)


class _Scanning:
    """A page while it is read."""

    def __init__(self, body: bytes, max_links: int) -> None:
        self.body = body
        self.max_links = max_links
        self.events: list[tuple[str, bool] | tuple[str, Attributes, bool]] = []
        self.places: dict[str, int] = {}
        self.declarations = 0
        self.cut = False
        self.title: str | None = None
        self.language: str | None = None
        self.pieces: list[bytes] = []
        self.odd = False
        self.drawn_title = False
        self.in_head = True
        self.in_select = False
        self.templates = 0
        self.foreign = {b"svg": 0, b"math": 0}

    @property
    def is_foreign(self) -> bool:
        """Whether one is in a drawing or a formula, where other rules hold."""
        return any(self.foreign.values())

    def run(self) -> None:
        position = self.idle(0)
        while found := _MARKUP.search(self.body, position):
            self.data(self.body[position : found.start()])
            self.pieces.append(b" ")
            position = found.end()
            if found[2] is None:
                if self.is_foreign and found[0].startswith(b"<![CDATA["):
                    self.odd = True
            elif not found[4]:
                return
            elif found[1]:
                self.end(found[2].lower())
            else:
                position = self.start(found[2].lower(), found[3], position)
            position = self.idle(position)
        self.data(self.body[position:])

    def idle(self, position: int) -> int:
        """Pass what is nothing but text in a page's body; gives where that ends."""
        if self.in_head or not (found := _IDLY.match(self.body, position)):
            return position
        self.put(_IDLE.sub(b" ", found[0]))
        return found.end()

    def data(self, text: bytes) -> None:
        """Text between tags."""
        if self.in_head and text.strip(b"\t\n\f\r "):
            self.in_head = False
        self.put(text)

    def put(self, text: bytes, *, references: bool = True) -> None:
        """Take text that a reader sees, unless it stands in a template."""
        if not self.templates:
            self.pieces.append(_decoded(text).encode() if references and b"&" in text else text)

    # -- tags -----------------------------------------------------------------------------------------------

    def end(self, name: bytes) -> None:
        if name == b"template":
            self.templates = max(self.templates - 1, 0)
        elif name in self.foreign:
            self.foreign[name] = max(self.foreign[name] - 1, 0)
        elif name == b"select":
            self.in_select = False

    def start(self, name: bytes, rest: bytes, position: int) -> int:
        """Read a start tag; gives where to go on, `position` being behind it."""
        self.in_head = self.in_head and name in _IN_HEAD
        self.odd = self.odd or name in _ODD or (self.in_select and name in _ODD_IN_SELECT)
        if name in (b"a", b"area"):
            self.anchor(rest)
        elif name in _READ:
            self.declaration(name, rest)
        elif name == b"html":
            self.root(rest)
        if name in _END_SELECT:
            self.in_select = False
        if name in _RAW:
            return self.raw(name, position)
        if name == b"template":
            self.templates += 1
        elif name in self.foreign:
            self.foreign[name] += not _closes_itself(rest)
        elif name == b"select":
            self.in_select = not self.in_select
        elif name == b"plaintext":
            self.put(self.body[position:], references=False)
            return len(self.body)
        return position

    def anchor(self, rest: bytes) -> None:
        said = _attributes(rest, (b"href", b"xlink:href", b"rel"))
        value = said.get("href", said.get("xlink:href") if self.is_foreign else None)
        if value is None:
            return
        address = value.strip(_EDGE).partition("#")[0]
        scheme = _SCHEME.match(address)
        if scheme and scheme[1].lower() not in ("http", "https"):
            return
        nofollow = b"nofollow" in said.get("rel", "").encode().lower().split()
        place = self.places.get(address)
        if place is not None:
            if not nofollow:
                self.events[place] = (address, False)
        elif len(self.places) <= self.max_links:
            self.places[address] = len(self.events)
            self.events.append((address, nofollow))

    def declaration(self, name: bytes, rest: bytes) -> None:
        wanted = _READ[name]
        said = _attributes(rest, wanted)
        if wanted[0].decode() not in said:
            return
        if self.declarations == DECLARATIONS_LIMIT:
            self.cut = True
            return
        self.declarations += 1
        self.events.append((name.decode(), said, self.in_head))

    def root(self, rest: bytes) -> None:
        self.odd = self.odd or self.is_foreign
        if self.language is None:
            self.language = _attributes(rest, (b"lang",)).get("lang")

    # -- text that is no markup -----------------------------------------------------------------------------

    def raw(self, name: bytes, position: int) -> int:
        """Pass an element whose content is text; gives where its end tag begins."""
        if name == b"script":
            end = _end_of_script(self.body, position)
        else:
            found = _ENDS[name].search(self.body, position)
            end = found.start() if found else len(self.body)
        content = self.body[position:end]
        if self.is_foreign and b"<" in content:
            self.odd = True
        if name == b"title":
            self.take_title(content)
        if name in _WITH_REFERENCES or name == b"xmp":
            self.put(content, references=name in _WITH_REFERENCES)
        return end

    def take_title(self, content: bytes) -> None:
        """The first title is the page's; drawings have titles too, where it is not always plain what is a drawing."""
        if self.is_foreign:
            self.drawn_title = True
        elif self.title is None:
            self.title = _with_line_ends(_decoded(content))


def _end_of_script(body: bytes, position: int) -> int:
    """A script may hold what looks like its end, within a comment that holds a script."""
    state = _PLAIN
    for found in _IN_SCRIPT.finditer(body, position):
        if found[0] == b"-->":
            state = _PLAIN
        elif found[1] is None:
            state = max(state, _IN_COMMENT)
        elif not found[1]:
            state = _IN_INNER_SCRIPT if state == _IN_COMMENT else state
        elif state == _IN_INNER_SCRIPT:
            state = _IN_COMMENT
        else:
            return found.start()
    return len(body)


def _attributes(rest: bytes, wanted: tuple[bytes, ...]) -> dict[str, str]:
    """The attributes of these names, the first of each, with their references read."""
    said: dict[str, str] = {}
    for found in _ATTRIBUTE.finditer(rest):
        name = found[1].lower()
        if name in wanted and (key := name.decode()) not in said:
            said[key] = _with_line_ends(_decoded(b"".join(found.groups(b"")[1:]), in_attribute=True))
    return said


def _closes_itself(rest: bytes) -> bool:
    last = 0
    for found in _ATTRIBUTE.finditer(rest):
        last = found.end()
    return rest.endswith(b"/") and last < len(rest)


def _with_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _decoded(text: bytes, *, in_attribute: bool = False) -> str:
    """Text with its character references read."""
    plain = text.decode("utf-8", "replace")
    if "&" not in plain:
        return plain

    def read(found: re.Match[str]) -> str:
        number, name, semicolon = found.groups()
        if number is not None:
            return _character(number)
        if semicolon and (character := html5.get(f"{name};")):
            return character
        for length in range(min(len(name), _LEGACY), 1, -1):
            if character := html5.get(name[:length]):
                behind = name[length : length + 1] or semicolon or plain[found.end() : found.end() + 1]
                if in_attribute and (behind == "=" or (behind.isascii() and behind.isalnum())):
                    break
                return character + name[length:] + semicolon
        return found[0]

    return _REFERENCE.sub(read, plain)


def _character(number: str) -> str:
    digits = number.lstrip("xX")
    code = int(digits.lstrip("0")[:8] or "0", 16 if digits != number else 10)
    if code == 0 or code > _MOST_UNICODE or 0xD800 <= code < 0xE000:
        return _REPLACEMENT
    if 0x80 <= code < 0xA0:
        return bytes([code]).decode("cp1252", "ignore") or chr(code)
    return chr(code)
