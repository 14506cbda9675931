"""XML as it is served: read piece by piece, past the errors at which an XML parser has to stop.

An XML parser may not go on behind the first error (XML 1.0, section 1.2), and sitemaps and feeds hold bare
ampersands, tags that do not match, and ends that never came. Here names, attributes and text are told in their order,
and nothing is checked against anything else.

What makes XML dangerous is not there at all: no entity is known but the five that XML itself has, nothing outside the
text is ever opened, and a document type declaration ends the reading. Time grows with the length of the text, and
what is held back between two pieces is bounded.

Sources: XML 1.0 (Fifth Edition), sections 2.4 to 2.8 and 4.6.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

HELD: Final = 65_536
"""Characters without an end of what they began: a longer tag ends the reading, longer text is told in parts."""

_NAMED: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_REFERENCE: Final = re.compile(r"&(?:#(?:x([0-9A-Fa-f]{1,6})|([0-9]{1,7}))|(amp|lt|gt|quot|apos));")
_PLAIN: Final = re.compile(r"<(/?)([^\s/<>!?\"']+)>([^<]*)(?=<)")
"""A tag without attributes and the text behind it: nearly all there is in a sitemap, so it has a way of its own."""
_NAME: Final = re.compile(r"[^\s/>]+")
_ATTRIBUTE: Final = re.compile(r"([^\s=/\"']+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_QUOTED: Final = re.compile(r"\"[^\"]*\"|'[^']*'")
_QUOTES_LOOKED_AT: Final = 8
"""Ends of a tag that may lie within quotes."""


class Listener(Protocol):
    """Who is told what the text holds."""

    def opened(self, name: str, attributes: str) -> None:
        """An element begins; `attributes` is as it stands there, for `attributes_of`."""
        ...

    def closed(self, name: str) -> None:
        """An element ends."""
        ...

    def text(self, text: str) -> None:
        """Text between tags, references resolved; an element's text may come in several parts."""
        ...


class MarkupReader:
    """Tells a listener what the pieces of a text hold. `problem` says why it stopped, if it did."""

    def __init__(self, listener: Listener) -> None:
        self.problem = ""
        self._listener = listener
        self._held = ""
        self._until = ""
        """The end of a comment or an instruction that is passed over, or of literal text."""

    def feed(self, piece: str) -> None:
        """Read on."""
        text = self._held + piece
        position = 0
        while position < len(text) and not self.problem:
            after = self._step(text, position)
            if after == position:
                break
            position = after
        self._held = text[position:]
        if len(self._held) > HELD and not self.problem:
            self.problem = f"a tag has no end within {HELD} characters"

    def close(self) -> bool:
        """The text ends here. False when it ends within text, which then may lack its end."""
        held, self._held = self._held, ""
        return self.problem != "" or not held or held[0] == "<" or self._until != ""

    def _step(self, text: str, position: int) -> int:
        if self._until:
            return self._inside(text, position)
        plain = _PLAIN.match(text, position)
        if plain is None:
            return self._tag(text, position) if text[position] == "<" else self._text(text, position)
        slash, name, behind = plain.groups()
        if slash:
            self._listener.closed(name)
        else:
            self._listener.opened(name, "")
        if behind:
            self._listener.text(resolved(behind))
        return plain.end()

    # -- one thing each: the position behind it, or the same while its end has not come ------------------------

    def _text(self, text: str, position: int) -> int:
        end = text.find("<", position)
        if end < 0:
            if len(text) - position <= HELD:
                return position
            end = len(text)
        self._listener.text(resolved(text[position:end]))
        return end

    def _tag(self, text: str, position: int) -> int:
        kind = text[position + 1 : position + 2]
        if kind == "!":
            return self._declaration(text, position)
        if kind == "?":
            self._until = "?>"
            return position + 2
        end = _end_of_tag(text, position)
        if end < 0:
            return position
        body = text[position + 1 : end]
        name = _NAME.match(body, 1 if kind == "/" else 0)
        if name is None:
            return end + 1
        if kind == "/":
            self._listener.closed(name[0])
            return end + 1
        self._listener.opened(name[0], body[name.end() :])
        if body.endswith("/"):
            self._listener.closed(name[0])
        return end + 1

    def _declaration(self, text: str, position: int) -> int:
        for start, end in (("<!--", "-->"), ("<![CDATA[", "]]>")):
            if text.startswith(start, position):
                self._until = end
                return position + len(start)
            if start.startswith(text[position:]):
                return position
        self.problem = "a document type declaration"
        return position

    def _inside(self, text: str, position: int) -> int:
        until = self._until
        end = text.find(until, position)
        if end >= 0:
            self._until = ""
        else:
            end = max(position, len(text) - len(until) + 1)
        if until == "]]>" and end > position:
            self._listener.text(text[position:end])
        return end if self._until else end + len(until)


def resolved(text: str) -> str:
    """`text` with its character references resolved; what is none that XML has, stays as it is."""
    return _REFERENCE.sub(_character, text) if "&" in text else text


def attributes_of(text: str) -> dict[str, str]:
    """The attributes of a tag, by name as it stands there."""
    return {found[1]: resolved(found[2] if found[2] is not None else found[3]) for found in _ATTRIBUTE.finditer(text)}


def _character(reference: re.Match[str]) -> str:
    hexadecimal, decimal, name = reference.groups()
    if name:
        return _NAMED[name]
    number = int(hexadecimal, 16) if hexadecimal else int(decimal)
    return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"


def _end_of_tag(text: str, position: int) -> int:
    """Where the tag's `>` is, one within quotes passed over; -1 when it has not come."""
    end = text.find(">", position)
    for _ in range(_QUOTES_LOOKED_AT):
        if end < 0 or not _open_quote(text[position:end]):
            return end
        end = text.find(">", end + 1)
    return end


def _open_quote(tag: str) -> bool:
    if '"' not in tag and "'" not in tag:
        return False
    rest = _QUOTED.sub("", tag)
    return '"' in rest or "'" in rest
