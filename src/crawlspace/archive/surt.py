"""Sort-friendly keys of URLs, as readers of web archives look them up. Pure.

The key of `http://www.Example.com/A?c=1&b=2` is `com,example)/a?b=2&c=1`: the labels of the host from last to first,
then path and query, in lower case. Scheme, `www`, default port, session ids and the order of parameters are left out,
so that a reader finds a page under each of its usual spellings. Readers compute the key of what they are asked for
by the same rules, which are therefore not ours to better: those of the Internet Archive's Wayback (Heritrix' "Sort-
friendly URI Reordering Transform"). A key never holds a blank, a control or anything beyond ASCII.

This is no identity: what a crawl takes for one page is told by `crawlspace.urls` alone.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from urllib.parse import unquote_plus, unquote_to_bytes, urlencode

import msgspec

from crawlspace.exchange import Capture
from crawlspace.urls.parser import resolve

QUERY_LIMIT = 4096
"""Characters of a body that go into a key: what pywb takes."""

_PARTS = re.compile(r"(https?|ftp)://(?:[^/?#@]*@)?([^/?#]*)([^?#]*)(?:\?([^#]*))?", re.I)
_PORT = re.compile(r"(.*?)(?::([0-9]*))?", re.S)
_DEFAULT = {"http": "80", "https": "443", "ftp": "21"}
_DOTTED = re.compile(r"[0-9]+(?:\.[0-9]+){3}")
_WWW = re.compile(r"www[0-9]*\.(?=.)")
_REMOVED = re.compile(r"[\t\r\n]")
_UNESCAPES = 32
"""How often a text is unescaped: more would be a text made to keep us busy."""
_SPELLED = re.compile(rb"[\x00-\x20\x7f-\xff#%]")
_SLASHES = re.compile(r"//+")
_TOKEN = r"[0-9a-z]{24}"
_PATH_SESSION = re.compile(rf"(/)\((?:{_TOKEN}|(?:[a-z]\({_TOKEN}\))+)\)/([^?]+\.aspx)")
_QUERY_SESSIONS = tuple(
    re.compile(rf"^(.*){word}(?:&(.*))?$")
    for word in (
        "jsessionid=[0-9a-z]{32}",
        "phpsessid=[0-9a-z]{32}",
        "sid=[0-9a-z]{32}",
        "aspsessionid[a-z]{8}=[a-z]{24}",
        "cfid=[^&]+&cftoken=[^&]+",
    )
)


def surt(url: str) -> str:
    """The key of a URL; of what is no http, https or ftp URL the text itself, escaped."""
    text = _REMOVED.sub("", url)
    if not text.isascii() and (parsed := resolve(text)) is not None:
        text = parsed.href
    found = _PARTS.match(text)
    if found is None:
        return _escaped(text.encode("utf-8", "replace"))
    scheme, authority, path, query = found.groups()
    return f"{_host(scheme.lower(), authority)}){_path(path)}{_query(query)}"


def surt_of(capture: Capture) -> tuple[str, str]:
    """The key of an exchange, and what its request adds to the key beside its method: empty for most.

    A method other than GET is part of the key, and so is the body of a POST or a PUT, in the way of pywb: forms and
    JSON as parameters, anything else in base 64, cut at `QUERY_LIMIT` characters.
    """
    method = capture.method.upper()
    if method == "GET":
        return surt(capture.url), ""
    body = _as_query(capture)[:QUERY_LIMIT] if method in ("POST", "PUT") else ""
    mark = "&" if "?" in capture.url else "?"
    return surt(f"{capture.url}{mark}__wb_method={method}{'&' + body if body else ''}"), body


def _host(scheme: str, authority: str) -> str:
    split = _PORT.fullmatch(authority)
    name, port = split.groups() if split else (authority, None)
    if authority.endswith("]"):
        name, port = authority, None
    name = _escaped(name.strip("[]").encode("utf-8", "replace")).lower()
    labels = [label for label in _WWW.sub("", name.strip("."), count=1).split(".") if label]
    turned = name if ":" in name else ",".join(reversed(labels))
    return turned if port in (None, "", _DEFAULT[scheme]) else f"{turned}:{port}"


def _path(path: str) -> str:
    plain = _SLASHES.sub("/", _normal(path) or "/")
    return _PATH_SESSION.sub(r"\1\2", plain, count=1).rstrip("/") or "/"


def _query(query: str | None) -> str:
    text = _normal(query or "")
    for session in _QUERY_SESSIONS:
        text = session.sub(lambda found: found[1] + (found[2] or ""), text)
    return "?" + "&".join(sorted(text.split("&"), key=lambda pair: pair.split("=", 1))) if text else ""


def _normal(text: str) -> str:
    """`text` in lower case with the fewest escapes that keep it readable."""
    raw = text.encode("utf-8", "replace")
    for _ in range(_UNESCAPES):
        plain = unquote_to_bytes(raw)
        if plain == raw:
            break
        raw = plain
    return _escaped(raw).lower()


def _escaped(raw: bytes) -> str:
    return _SPELLED.sub(lambda byte: b"%%%02x" % byte[0][0], raw).decode("ascii")


# -- requests with a body -----------------------------------------------------------------------------------

_CONTENT_TYPE = re.compile(rb"^content-type:[ \t]*([^\r\n]*)", re.I | re.M)


def _as_query(capture: Capture) -> str:
    body = capture.request_body
    found = _CONTENT_TYPE.search(capture.request_head)
    kind = found[1].decode("latin-1") if found else ""
    if not body:
        return ""
    if kind.startswith("application/x-www-form-urlencoded"):
        try:
            return unquote_plus(body.decode("utf-8"))
        except UnicodeDecodeError:
            return _as_base64(body)
    if kind.startswith("application/json"):
        return _as_parameters(body) or ""
    if kind.startswith("text/plain"):
        parameters = _as_parameters(body)
        return _as_base64(body) if parameters is None else parameters
    return _as_base64(body)


def _as_base64(body: bytes) -> str:
    return "__wb_post_data=" + b64encode(body[:QUERY_LIMIT]).decode()


def _as_parameters(body: bytes) -> str | None:
    """The leaves of a JSON document under their own names; None when it is none."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    leaves: dict[str, str] = {}
    seen: dict[str, int] = {}
    waiting: list[tuple[str, object]] = [("", document)]
    # Each leaf takes at least two characters: what comes later is cut off.
    while waiting and len(leaves) < QUERY_LIMIT:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(str(key), inner) for key, inner in reversed(value.items())]
        elif isinstance(value, list):
            waiting += [(name, inner) for inner in reversed(value)]
        elif name:
            again = seen[name] = seen.get(name, 1) + 1 if name in leaves else 1
            leaves[name if again == 1 else f"{name}.{again}_"] = _leaf(value)
    return urlencode(leaves)


def _leaf(value: object) -> str:
    """A value as JavaScript would print it."""
    if isinstance(value, bool) or value is None:
        return str(msgspec.json.encode(value), "ascii")
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return str(int(value))
    return str(value)
