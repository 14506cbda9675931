"""The one reader of URL text: the URL Standard's parser in native code, the same reading as in browsers.

Two builds of one parser (ada): `can_ada` is four times as fast and older. It knows older IDNA tables, leaves `/../`
in a path as it is behind a name like `/.well-known`, keeps `^` in paths, which the standard encodes by now, and
loses the empty query of a base to a bare fragment. So what it refuses, what has a host beyond ASCII, and those three
rare kinds are read by `ada_url`. On everything else both agree, which the standard's tests and a fuzzer hold.

Everything that reads an address (identity, scope, robots, connecting) reads it through here, so that no two parts
disagree on what the host of a URL is. Also here: why a text is no address, and the query of a link in a page whose
encoding is not UTF-8, since a browser sends that query in the page's own bytes.

Sources: URL Standard (url.spec.whatwg.org), sections "URL parsing" and "percent-encode after encoding"; Encoding
Standard, section "Names and labels". No function raises for any text.
"""

from __future__ import annotations

import codecs
import re
from functools import lru_cache
from typing import Final, Protocol, cast

import ada_url
import can_ada

EDGE: Final = "".join(map(chr, range(0x21)))
"""C0 controls and the blank: what the standard trims from both ends of a URL."""

_BARE: Final = frozenset({"", "#", *EDGE})
"""How a text begins that may hold nothing but a fragment."""
_HTTP: Final = ("http:", "https:")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_AUTHORITY: Final = re.compile(r"[\x00-\x20]*(?:[A-Za-z][A-Za-z0-9+.\-]*:[/\\]*|[/\\]{2,})([^/\\?#]*)")
_PORT: Final = re.compile(r":[^:\]]*\Z")
_REMOVED: Final = re.compile(r"[\t\n\r]")
_HIDDEN_NAME: Final = re.compile(r"/[\t\n\r]*\.[\t\n\r]*[^./\t\n\r]")
"""A name that begins with a dot: behind it the quicker parser looks for no dot segments."""


class Parsed(Protocol):
    """A URL as a native parser gives it; adding a text resolves that text against it."""

    href: str
    hostname: str
    port: str
    protocol: str
    username: str
    password: str

    def __add__(self, text: str, /) -> Parsed: ...


class _Exact(ada_url.URL):
    """A URL read by the slower parser, whose host names follow today's IDNA tables."""

    def __add__(self, text: str, /) -> Parsed:
        return _Exact(text, self.href)


def resolve(text: str, base: Parsed | None = None) -> Parsed | None:
    """`text` as a URL, relative to `base` where there is one; None when it is none by the URL Standard."""
    if (not text.isascii() or "%" in text) and _is_foreign(text):
        return _resolve_exactly(text, base)
    if "^" in text or (("/." in text or not text.isprintable()) and _HIDDEN_NAME.search(text)):
        return _resolve_exactly(text, base)
    if text[:1] in _BARE and base is not None and text.lstrip(EDGE)[:1] in ("", "#") and "?" in base.href:
        return _resolve_exactly(text, base)
    try:
        return cast(Parsed, can_ada.parse(text)) if base is None else base + text
    except ValueError:
        # Either it is no URL, or its host has a label that only the older tables refuse.
        return _resolve_exactly(text, base)
    except TypeError:
        return resolve(_scalar(text), base)


def _is_foreign(text: str) -> bool:
    """Whether the host may be written in anything but ASCII: then the tables decide what it is."""
    if _REMOVED.search(text):
        return True
    start = _AUTHORITY.match(text)
    return start is not None and ("%" in start[1] or not start[1].isascii())


def _resolve_exactly(text: str, base: Parsed | None) -> Parsed | None:
    try:
        return _Exact(_scalar(text), None if base is None else base.href)
    except ValueError:
        return None


def _scalar(text: str) -> str:
    """`text` with each lone surrogate as U+FFFD: the bindings take none, the standard reads them so."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_http(parsed: Parsed) -> bool:
    return parsed.protocol in _HTTP


def without_credentials(parsed: Parsed) -> str:
    """The href of `parsed` without user name and password, which it loses."""
    parsed.username = ""
    parsed.password = ""
    return parsed.href


def failure(text: str, base: Parsed | None) -> str:
    """Why `text` gave no http or https URL: `empty`, `scheme`, `host` or `syntax`."""
    bare = _REMOVED.sub("", text).strip(EDGE)
    scheme = _SCHEME.match(bare)
    if not bare and base is None:
        return "empty"
    if scheme is None:
        return _relative_failure(bare, base)
    if scheme[0].lower() not in _HTTP:
        return "scheme"
    return _authority_failure(bare[scheme.end() :])


def _relative_failure(bare: str, base: Parsed | None) -> str:
    if base is None:
        return "syntax"
    if not is_http(base):
        return "scheme"
    return _authority_failure(bare) if bare[:1] in ("/", "\\") else "syntax"


def _authority_failure(rest: str) -> str:
    """`syntax` when only the port is wrong, else `host`."""
    authority = re.split(r"[/\\?#]", rest.lstrip("/\\"), maxsplit=1)[0].rpartition("@")[2]
    name = _PORT.sub("", authority)
    if name and name != authority and resolve(f"http://{name}/") is not None:
        return "syntax"
    return "host"


# -- the query in a page's own encoding ---------------------------------------------------------------------

_CODECS: Final = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gbk",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
    "big5": "cp950",
    "iso2022_jp": "iso2022_jp",
    "euc_jp": "euc_jp",
    **{
        name: name
        for name in (
            *("gbk", "gb18030", "cp932", "cp949", "cp950", "cp866", "cp874", "koi8-r", "koi8-u", "mac-roman"),
            *("mac-cyrillic", *(f"cp{number}" for number in range(1250, 1259))),
            *(f"iso8859-{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
        )
    },
}
"""Python's name of an encoding, and the codec that comes closest to what the Encoding Standard means by it."""

_LABELS: Final = {
    "x-mac-cyrillic": "mac-cyrillic",
    "x-mac-ukrainian": "mac-cyrillic",
    "iso-8859-8-i": "iso8859-8",
    "windows-874": "cp874",
    "windows-949": "cp949",
    "windows-31j": "cp932",
    "x-sjis": "cp932",
    "x-gbk": "gbk",
    "x-euc-jp": "euc_jp",
    "x-x-big5": "cp950",
    "dos-874": "cp874",
}
"""Labels of the Encoding Standard that Python does not know."""

_Spelling = dict[int, int | str | None]

_JIS_TWINS: Final[_Spelling] = {
    **str.maketrans("\uff0d\uff5e\u2225\uffe0\uffe1\uffe2", "\u2212\u301c\u2016\u00a2\u00a3\u00ac")
}
_SPELLINGS: Final[dict[str, _Spelling]] = {
    "cp932": {0x2212: "\uff0d", 0x00A5: "\\", 0x203E: "~"},
    "euc_jp": _JIS_TWINS,
    "iso2022_jp": {**_JIS_TWINS, 0x0E: 0xFFFD, 0x0F: 0xFFFD, 0x1B: 0xFFFD},
    "gb18030": {0xE5E5: None},
}
"""Characters that stand for the same code in the standard's tables and under another character in Python's."""

_STATEFUL: Final = "iso2022_jp"
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
_NEEDS_PERCENT: Final = re.compile(rb"[\x00-\x20\"#<>'\x7f-\xff]")


@lru_cache(maxsize=256)
def query_codec(encoding: str) -> str | None:
    """The codec for queries of pages in `encoding`; None for UTF-8, UTF-16 and names that nobody knows."""
    label = encoding.strip(EDGE).lower()
    if label in _LABELS:
        return _LABELS[label]
    try:
        return _CODECS.get(codecs.lookup(label).name)
    except (LookupError, ValueError):
        return None


def with_query_in(text: str, codec: str | None) -> str:
    """`text` with its query percent-encoded from the bytes of `codec`, as a browser sends it.

    Characters that the encoding lacks become percent-encoded decimal references (`%26%238224%3B`), as the URL
    Standard has it. Without a query or a codec the text comes back as it is.
    """
    if codec is None or (text.isascii() and codec != _STATEFUL):
        return text
    head, mark, query = _REMOVED.sub("", text).strip(EDGE).partition("#")[0].partition("?")
    if not mark:
        return text
    fragment = text.partition("#")
    return f"{head}?{_encode(query, codec)}{fragment[1]}{fragment[2]}"


def _encode(query: str, codec: str) -> str:
    if codec == _STATEFUL:
        return _encode_stateful(query.translate(_SPELLINGS[codec]), codec)
    return _NOT_ASCII.sub(lambda run: "".join(_encode_one(char, codec) for char in run[0]), query)


def _encode_one(char: str, codec: str) -> str:
    spelled = char.translate(_SPELLINGS.get(codec, {}))
    try:
        raw = spelled.encode(codec)
    except UnicodeEncodeError:
        raw = b""
    if not raw and codec == "gbk" and char == "\u20ac":
        raw = b"\x80"
    return _percent(raw) if raw else _reference(char)


def _encode_stateful(query: str, codec: str) -> str:
    """The escapes of a stateful encoding span characters, so runs that can be encoded are encoded whole."""
    done: list[str] = []
    run = ""
    for char in query:
        try:
            char.encode(codec)
        except UnicodeEncodeError:
            done += [_percent(run.encode(codec)), _reference(char)]
            run = ""
        else:
            run += char
    return "".join([*done, _percent(run.encode(codec))])


def _percent(raw: bytes) -> str:
    return _NEEDS_PERCENT.sub(lambda byte: b"%%%02X" % byte[0][0], raw).decode("ascii")


def _reference(char: str) -> str:
    number = 0xFFFD if "\ud800" <= char <= "\udfff" else ord(char)
    return f"%26%23{number}%3B"
