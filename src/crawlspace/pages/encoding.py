"""Which encoding a page is in, and its text: the order of the HTML and Encoding standards, as browsers have it.

A byte order mark decides, then the charset of the HTTP header, then a declaration in the page, then windows-1252
(UTF-8 for XHTML). Nothing is guessed from the letters: the query of a link depends on the answer, and must be the
one that the site's own visitors send. Names are those of the Encoding Standard, in lower case.

Sources: HTML Standard, "determining the character encoding"; Encoding Standard, "names and labels".
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Final

from crawlspace.exchange import Headers
from crawlspace.pages.mime import content_type

DEFAULT: Final = "windows-1252"
PRESCAN: Final = 1024
"""Bytes that the standard searches for a declaration before it reads the page."""
LATE: Final = 16_384
"""Bytes in which a later declaration counts: a browser that meets one starts again with it."""

_LABELS_OF: Final = {
    "utf-8": "utf-8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf8 x-unicode20utf8",
    "ibm866": "ibm866 866 cp866 csibm866",
    "iso-8859-2": "iso-8859-2 csisolatin2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2",
    "iso-8859-3": "iso-8859-3 csisolatin3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3",
    "iso-8859-4": "iso-8859-4 csisolatin4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4",
    "iso-8859-5": ("iso-8859-5 csisolatincyrillic cyrillic iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988"),
    "iso-8859-6": (
        "iso-8859-6 arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6-e "
        "iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987"
    ),
    "iso-8859-7": (
        "iso-8859-7 csisolatingreek ecma-118 elot_928 greek greek8 iso-ir-126 iso8859-7 iso88597 "
        "iso_8859-7 iso_8859-7:1987 sun_eu_greek"
    ),
    "iso-8859-8": (
        "iso-8859-8 csiso88598e csisolatinhebrew hebrew iso-8859-8-e iso-ir-138 iso8859-8 iso88598 "
        "iso_8859-8 iso_8859-8:1988 visual"
    ),
    "iso-8859-8-i": "iso-8859-8-i csiso88598i logical",
    "iso-8859-10": "iso-8859-10 csisolatin6 iso-ir-157 iso8859-10 iso885910 l6 latin6",
    "iso-8859-13": "iso-8859-13 iso8859-13 iso885913",
    "iso-8859-14": "iso-8859-14 iso8859-14 iso885914",
    "iso-8859-15": "iso-8859-15 csisolatin9 iso8859-15 iso885915 iso_8859-15 l9",
    "iso-8859-16": "iso-8859-16",
    "koi8-r": "koi8-r cskoi8r koi koi8 koi8_r",
    "koi8-u": "koi8-u koi8-ru",
    "macintosh": "macintosh csmacintosh mac x-mac-roman",
    "windows-874": "windows-874 dos-874 iso-8859-11 iso8859-11 iso885911 tis-620",
    "windows-1250": "windows-1250 cp1250 x-cp1250",
    "windows-1251": "windows-1251 cp1251 x-cp1251",
    "windows-1252": (
        "windows-1252 ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 "
        "iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii x-cp1252"
    ),
    "windows-1253": "windows-1253 cp1253 x-cp1253",
    "windows-1254": (
        "windows-1254 cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 "
        "iso_8859-9:1989 l5 latin5 x-cp1254"
    ),
    "windows-1255": "windows-1255 cp1255 x-cp1255",
    "windows-1256": "windows-1256 cp1256 x-cp1256",
    "windows-1257": "windows-1257 cp1257 x-cp1257",
    "windows-1258": "windows-1258 cp1258 x-cp1258",
    "x-mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "gbk": "gbk chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 iso-ir-58 x-gbk",
    "gb18030": "gb18030",
    "big5": "big5 big5-hkscs cn-big5 csbig5 x-x-big5",
    "euc-jp": "euc-jp cseucpkdfmtjapanese x-euc-jp",
    "iso-2022-jp": "iso-2022-jp csiso2022jp",
    "shift_jis": "shift_jis csshiftjis ms932 ms_kanji shift-jis sjis windows-31j x-sjis",
    "euc-kr": (
        "euc-kr cseuckr csksc56011987 iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949"
    ),
    "replacement": "replacement csiso2022kr hz-gb-2312 iso-2022-cn iso-2022-cn-ext iso-2022-kr",
    "utf-16be": "utf-16be unicodefffe",
    "utf-16le": "utf-16le csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16",
    "x-user-defined": "x-user-defined",
}
"""Every label of the Encoding Standard, under the name of its encoding."""

_LABELS: Final = {label: name for name, labels in _LABELS_OF.items() for label in labels.split()}

_MULTIBYTE: Final = {
    "utf-8": "utf-8",
    "utf-16be": "utf-16-be",
    "utf-16le": "utf-16-le",
    "gbk": "gb18030",
    "gb18030": "gb18030",
    "big5": "big5hkscs",
    "euc-jp": "euc_jp",
    "iso-2022-jp": "iso2022_jp",
    "shift_jis": "cp932",
    "euc-kr": "cp949",
}
"""Python's closest codec; all others have one byte for a character."""

_SINGLE: Final = {
    "ibm866": "cp866",
    "iso-8859-8-i": "iso8859-8",
    "macintosh": "mac-roman",
    "windows-874": "cp874",
    "x-mac-cyrillic": "mac-cyrillic",
}
_NOT_ASCII: Final = frozenset({"utf-16be", "utf-16le", "iso-2022-jp", "replacement"})
"""Encodings in which bytes below 128 may mean something else than ASCII."""

_MARKS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_BE, "utf-16be"), (codecs.BOM_UTF16_LE, "utf-16le"))
_MARK_STARTS: Final = frozenset(mark[:1] for mark, _ in _MARKS)
_BLANKS: Final = "\t\n\f\r "

_ATTRIBUTE: Final = re.compile(
    rb"[\t\n\f\r /]*([^\t\n\f\r />][^\t\n\f\r />=]*)"
    rb"(?:[\t\n\f\r ]*=[\t\n\f\r ]*(?:\"([^\"]*)\"|'([^']*)'|([^\t\n\f\r >\"'][^\t\n\f\r >]*)?))?"
)
_TAG: Final = re.compile(rb"</?([A-Za-z][^\t\n\f\r >]*)")
_PLAIN: Final = re.compile(
    rb"(?:[^<]++|<(?:/?[A-LN-Za-ln-z][A-Za-z0-9]*+(?:[\t\n\f\r ]++[A-Za-z:-]++=\"[^\"<>]*+\")*+[\t\n\f\r ]*+/?"
    rb"|[!?](?!--)[^>]*+)>)*+"
)
"""Text and tags, plainly spelled, that are no `meta`: what stands before it is passed over in one go."""
_PLAIN_META: Final = re.compile(rb"<meta(?:[\t\n\f\r ]++[A-Za-z:-]++=\"[^\"<>]*+\")++[\t\n\f\r ]*+/?>", re.I)
"""A `meta` as plainly spelled: a site has the same in all of its pages, of which the meaning is remembered."""
_IN_CONTENT: Final = re.compile(
    r"charset[\t\n\f\r ]*=[\t\n\f\r ]*(?:\"([^\"]*)\"|'([^']*)'|([^\"'\t\n\f\r ;]+))", re.I
)
_IN_XML: Final = re.compile(rb"<\?xml[^>]*?\sencoding\s*=\s*[\"']([A-Za-z0-9._:\-]+)[\"']")


def encoding_of(label: str) -> str | None:
    """The encoding that a label such as `latin1` names; None for a label that no browser knows."""
    return _LABELS.get(label.strip(_BLANKS).lower())


def sniff(body: bytes, headers: Headers) -> str:
    """The encoding of a page, from its first bytes and its header."""
    mark = marked(body)
    if mark is not None:
        return mark
    kind = content_type(headers)
    default = "utf-8" if kind.essence == "application/xhtml+xml" else DEFAULT
    return encoding_of(kind.charset) or declared(body[:PRESCAN]) or _late(body[:LATE]) or default


def marked(body: bytes) -> str | None:
    """The encoding whose byte order mark a body begins with."""
    if body[:1] not in _MARK_STARTS:
        return None
    return next((name for mark, name in _MARKS if body.startswith(mark)), None)


def declared(head: bytes) -> str | None:
    """The encoding that the start of a page declares (HTML Standard, "prescan a byte stream")."""
    if head.startswith((b"<\0?\0x\0", b"\0<\0?\0x")):
        return "utf-16le" if head[0] else "utf-16be"
    return _in_meta(head) or _in_xml(head)


def decode(body: bytes, encoding: str) -> str:
    """`body` as text without its byte order mark; bytes that mean nothing become U+FFFD."""
    body = _without_mark(body, encoding)
    codec = _MULTIBYTE.get(encoding)
    if codec is not None:
        return body.decode(codec, "replace")
    if encoding == "replacement":
        return "\ufffd" if body else ""
    return codecs.charmap_decode(body, "replace", _table(encoding))[0]


def incremental(encoding: str) -> Callable[[bytes, bool], str]:
    """`decode` for a text in pieces, the last of them marked as such; a byte order mark is left in it."""
    codec = _MULTIBYTE.get(encoding)
    if codec is not None:
        return codecs.getincrementaldecoder(codec)("replace").decode
    return lambda piece, _last: decode(piece, encoding)


def as_utf8(body: bytes, encoding: str) -> bytes:
    """`body` in UTF-8, for readers that know nothing else. Bytes that are no UTF-8 stay where it is UTF-8 already."""
    if encoding == "utf-8":
        return body.removeprefix(codecs.BOM_UTF8)
    if encoding not in _NOT_ASCII and body.isascii():
        return body
    return decode(body, encoding).encode("utf-8", "replace")


def _without_mark(body: bytes, encoding: str) -> bytes:
    mark = next((mark for mark, name in _MARKS if name == encoding), None)
    return body.removeprefix(mark) if mark else body


@cache
def _table(encoding: str) -> str:
    """The 256 characters of a one-byte encoding."""
    if encoding == "x-user-defined":
        return "".join(map(chr, [*range(0x80), *range(0xF780, 0xF800)]))
    codec = _SINGLE.get(encoding, encoding)
    return "".join(bytes([byte]).decode(codec, "ignore") or _undefined(byte) for byte in range(256))


def _undefined(byte: int) -> str:
    """Holes among the C1 controls are those controls in the standard's tables; other holes are errors."""
    return chr(byte) if byte < 0xA0 else "\ufffd"


# -- declarations -------------------------------------------------------------------------------------------


def _in_meta(head: bytes) -> str | None:
    if b"charset" not in head.lower():
        return None
    position = _behind_plain(head, 0)
    while plain := _PLAIN_META.match(head, position):
        if found := _of_plain_meta(plain[0]):
            return found
        position = _behind_plain(head, plain.end())
    return _in_odd_meta(head, position)


def _in_odd_meta(head: bytes, position: int) -> str | None:
    while (position := head.find(b"<", _behind_plain(head, position))) >= 0:
        if head.startswith(b"<!--", position):
            end = head.find(b"-->", position + 2)
            if end < 0:
                return None
            position = end + 3
        elif tag := _TAG.match(head, position):
            position, attributes = _attributes(head, tag.end())
            if position == len(head):
                return None
            if tag[1].lower() == b"meta" and (found := _of_meta(attributes)):
                return found
        elif head[position + 1 : position + 2] in (b"!", b"/", b"?"):
            position = max(head.find(b">", position), position) + 1
        else:
            position += 1
    return None


def _behind_plain(head: bytes, position: int) -> int:
    plain = _PLAIN.match(head, position)
    return plain.end() if plain else position


def _late(head: bytes) -> str | None:
    return _in_meta(head) if len(head) > PRESCAN else None


def _attributes(head: bytes, position: int) -> tuple[int, dict[str, str]]:
    """Attributes from `position` on, the first of each name, and where they end."""
    attributes: dict[str, str] = {}
    while found := _ATTRIBUTE.match(head, position):
        name, *values = found.groups(b"")
        attributes.setdefault(name.decode("latin-1").lower(), b"".join(values).decode("latin-1"))
        position = found.end()
    return position, attributes


@lru_cache(maxsize=256)
def _of_plain_meta(tag: bytes) -> str | None:
    return _of_meta(_attributes(tag, len(b"<meta"))[1])


def _of_meta(attributes: dict[str, str]) -> str | None:
    label = attributes.get("charset")
    if label is None and attributes.get("http-equiv", "").lower() == "content-type":
        found = _IN_CONTENT.search(attributes.get("content", ""))
        label = "".join(found.groups("")) if found else None
    return _usable(encoding_of(label or ""))


def _in_xml(head: bytes) -> str | None:
    found = _IN_XML.match(head)
    return _usable(encoding_of(found[1].decode("ascii"))) if found else None


def _usable(encoding: str | None) -> str | None:
    """What a declaration in ASCII can mean."""
    if encoding in ("utf-16be", "utf-16le"):
        return "utf-8"
    return DEFAULT if encoding == "x-user-defined" else encoding
