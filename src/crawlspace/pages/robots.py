"""robots.txt by RFC 9309: what an origin's answer comes to, and which rule decides about a URL.

The longest matching rule decides, and of two as long the one that allows. `*` stands for any characters and a `$` at
the end for the end; all else is compared as octets, with unreserved characters decoded and all others in one spelling
of percent-encoding (2.2.2). Groups that name the crawler are one group; only without them does the group of `*`
hold (2.2.1). Lines of other kinds never change how groups are read (2.2.4). A rule is matched in time that grows
with its length and the URL's, whatever stars it holds.

Choices where the RFC leaves one: a product token ends at the first character that is no letter, digit, `_`, `-` or
`.`, so that `Foo/1.0` and `Foo Bar` name `foo`; common misspellings, and a missing colon between two words, are read
as what was meant; a rule that starts neither with `/` nor with `*` matches nothing; 429 counts as no answer.
"""

from __future__ import annotations

import codecs
import math
import re
from dataclasses import dataclass, field
from typing import Annotated, Final, NamedTuple

from msgspec import Meta, Struct

from crawlspace.exchange import FetchError, FetchResult, RobotsFile, RobotsVerdict
from crawlspace.pages.mime import looks_like_html
from crawlspace.urls import percent

RULE_SHOWN: Final = 200
"""Characters of a rule that are shown."""
SITEMAPS: Final = 1000
"""Sitemap lines that are kept."""

_LINES: Final = re.compile(r"\r\n|\n|\r")
_TOKEN: Final = re.compile(r"[A-Za-z0-9_.\-]+")
_AUTHORITY: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.\-]*:)?//[^/?#]*")
_ILLEGAL: Final = re.compile(r"[^!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]")
_ESCAPED_BYTE: Final = re.compile("[\udc80-\udcff]")
_NOT_TEXT: Final = "\ufeff\0 \t"

_AGENT: Final = "user-agent"
_RULES: Final = {"allow": "Allow", "disallow": "Disallow"}
_NAMES: Final = {
    "useragent": _AGENT,
    "user agent": _AGENT,
    "crawldelay": "crawl-delay",
    "crawl delay": "crawl-delay",
    "site-map": "sitemap",
    **dict.fromkeys(("dissallow", "dissalow", "disalow", "diasllow", "disallaw"), "disallow"),
}
"""Common misspellings of the names of lines."""


class RobotsSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How robots.txt is treated."""

    obey: Annotated[bool, Meta(description="Obey robots.txt; only for sites that are yours should this be off.")] = (
        True
    )
    meta: Annotated[
        bool,
        Meta(description="Follow no link of a page whose meta robots or X-Robots-Tag says nofollow or none."),
    ] = True
    crawl_delay_max: Annotated[
        float, Meta(description="Longest Crawl-delay, in seconds, that is granted.", ge=0, le=86_400)
    ] = 30.0
    cache: Annotated[
        int, Meta(description="Seconds for which an answer holds; RFC 9309 names a day as the most.", ge=1, le=86_400)
    ] = 86_400
    retry: Annotated[
        float, Meta(description="Seconds until an origin that did not answer is asked again.", ge=0.1, le=86_400)
    ] = 600.0
    max_size: Annotated[
        int, Meta(description="Bytes of the file that are read; at least 500 KiB by RFC 9309.", ge=512_000)
    ] = 512 * 1024
    max_redirects: Annotated[
        int, Meta(description="Redirects that are followed to find it; at least 5 by RFC 9309.", ge=0, le=20)
    ] = 5


class RobotsDecision(NamedTuple):
    """Whether a URL may be fetched."""

    allowed: bool
    rule: str
    """The rule that decides, as `Disallow: /x (line 12)`, or why none does."""


# -- what an answer comes to --------------------------------------------------------------------------------


def judge(result: FetchResult, origin: str, now: int, settings: RobotsSettings) -> RobotsFile:
    """What the answer to /robots.txt comes to (RFC 9309, section 2.3.1); `result` is the last of its redirects."""
    verdict, detail = _verdict(result)
    text = ""
    if verdict is RobotsVerdict.RULES:
        body = _first(result.body, settings.max_size)
        text = _text(body)
        if len(body) < len(result.body):
            detail = f"{detail}, the first {len(body)} bytes of {len(result.body)}"
    lasts = settings.retry if verdict is RobotsVerdict.DEFER else settings.cache
    return RobotsFile(origin, now, now + round(lasts * 1000), verdict, text, detail)


def _verdict(result: FetchResult) -> tuple[RobotsVerdict, str]:
    if result.error is not None:
        # What fails on our side, such as a proxy, has to be named: nobody would look for it at the host.
        ours = f", {result.detail[:200]}" if result.error is FetchError.LOCAL and result.detail else ""
        return RobotsVerdict.DEFER, f"robots.txt: {result.error}{ours}"
    detail = f"robots.txt: status {result.status}"
    if 200 <= result.status < 300:
        if looks_like_html(result.body):
            return RobotsVerdict.ALLOW_ALL, f"{detail}, a page of HTML and no rules"
        return RobotsVerdict.RULES, detail
    if 300 <= result.status < 500 and result.status != 429:
        return RobotsVerdict.ALLOW_ALL, detail
    return RobotsVerdict.DEFER, detail


def _first(body: bytes, limit: int) -> bytes:
    """`body` up to its last full line within `limit`; a line that is cut could mean the contrary."""
    if len(body) <= limit:
        return body
    return body[: max(body.rfind(b"\n", 0, limit), body.rfind(b"\r", 0, limit)) + 1]


def _text(body: bytes) -> str:
    """The rules as text. A byte that is no UTF-8 is spelled as its percent-encoding: that is what it will match."""
    for mark, codec in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, "replace")
    text = body.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
    return _ESCAPED_BYTE.sub(lambda byte: f"%{ord(byte[0]) - 0xDC00:02X}", text)


# -- rules --------------------------------------------------------------------------------------------------


class _Rule(Struct, frozen=True):
    allow: bool
    pattern: str
    shown: str

    @property
    def rank(self) -> tuple[int, bool]:
        return len(self.pattern), self.allow


@dataclass(slots=True)
class _Group:
    """The rules of one product token; several groups of a file may name it."""

    rules: list[_Rule] = field(default_factory=list)
    delay: float | None = None


class RobotsRules:
    """The rules of one file for one product. `crawl_delay` is in seconds; `sitemaps` are as they stand there."""

    def __init__(self, text: str, product: str) -> None:
        self.sitemaps: tuple[str, ...]
        name = _token(product)
        groups, self.sitemaps = _read(text, name)
        group = groups.get(name) or groups.get("*")
        self.crawl_delay = group.delay if group else None
        self._none = (
            f"no rule for {name if name in groups else '*'} matches" if group else f"no group for {name} or *"
        )
        self._plain: dict[str, _Rule] = {}
        self._wild: list[_Rule] = []
        for rule in sorted(group.rules if group else (), key=lambda rule: rule.rank, reverse=True):
            if "*" in rule.pattern or rule.pattern.endswith("$"):
                self._wild.append(rule)
            else:
                self._plain.setdefault(rule.pattern, rule)
        self._lengths = sorted({len(pattern) for pattern in self._plain}, reverse=True)

    def check(self, fetch_url: str) -> RobotsDecision:
        """Whether `fetch_url` may be fetched. Only its path and query matter, the normal form that is requested."""
        path = _path(fetch_url)
        if path == "/robots.txt":
            return RobotsDecision(True, "robots.txt itself may always be fetched")
        best = self._plain_match(path)
        for rule in self._wild:
            if best is not None and rule.rank <= best.rank:
                break
            if _matches(rule.pattern, path):
                best = rule
                break
        return RobotsDecision(best.allow, best.shown) if best else RobotsDecision(True, self._none)

    def _plain_match(self, path: str) -> _Rule | None:
        for length in self._lengths:
            rule = self._plain.get(path[:length])
            if rule is not None:
                return rule
        return None


def _read(text: str, product: str) -> tuple[dict[str, _Group], tuple[str, ...]]:
    """The groups of `product` and of `*`, by token, and the sitemaps."""
    groups: dict[str, _Group] = {}
    sitemaps: dict[str, None] = {}
    current: list[_Group] = []
    naming = False
    for number, line in enumerate(_LINES.split(text), 1):
        key, value = _split(line)
        if key == _AGENT:
            current = current if naming else []
            naming = True
            if (token := _token(value)) in (product, "*"):
                current.append(groups.setdefault(token, _Group()))
        elif key in _RULES:
            naming = False
            _rule(current, key, value, number)
        elif key == "crawl-delay":
            _slow(current, value)
        elif key == "sitemap" and value and len(sitemaps) < SITEMAPS:
            sitemaps[value] = None
    return groups, tuple(sitemaps)


def _rule(groups: list[_Group], key: str, value: str, number: int) -> None:
    if value and groups:
        shown = f"{_RULES[key]}: {value[:RULE_SHOWN]} (line {number})"
        rule = _Rule(key == "allow", _pattern(value), shown)
        for group in groups:
            group.rules.append(rule)


def _split(line: str) -> tuple[str, str]:
    """Name and value of a line; the name is empty when it has none."""
    content = line.partition("#")[0].strip(_NOT_TEXT)
    if not content:
        return "", ""
    key, colon, value = content.partition(":")
    if not colon:
        words = content.split()
        key, value = words if len(words) == 2 else ("", "")
    key = key.strip(_NOT_TEXT).lower()
    return _NAMES.get(key, key), value.strip(_NOT_TEXT)


def _token(text: str) -> str:
    """The product token of an agent line or of ourselves, in lower case; `*` for everyone."""
    if text.startswith("*"):
        return "*"
    found = _TOKEN.match(text)
    return found[0].lower() if found else ""


def _slow(groups: list[_Group], value: str) -> None:
    try:
        delay = float(value)
    except ValueError:
        return
    if delay >= 0 and math.isfinite(delay):
        for group in groups:
            group.delay = delay if group.delay is None else group.delay


# -- matching -----------------------------------------------------------------------------------------------


def _normal(text: str) -> str:
    """`text` with one spelling of percent-encoding; characters that no URL holds are encoded as UTF-8."""
    text = _ILLEGAL.sub(lambda char: "".join(f"%{byte:02X}" for byte in char[0].encode("utf-8", "replace")), text)
    return percent.normal(text)


def _path(url: str) -> str:
    """Path and query as they are compared; a star or dollar in a URL is only itself."""
    authority = _AUTHORITY.match(url)
    rest = (url[authority.end() :] if authority else url).partition("#")[0]
    return _normal(rest if rest.startswith("/") else f"/{rest}").replace("*", "%2A").replace("$", "%24")


def _pattern(value: str) -> str:
    pattern = _normal(value)
    end = "$" if pattern.endswith("$") else ""
    return re.sub(r"\*+", "*", pattern.removesuffix("$").replace("$", "%24")) + end


def _matches(pattern: str, path: str) -> bool:
    """Each part between stars is looked for behind the one before it: the first place leaves the most room."""
    anchored = pattern.endswith("$")
    first, *parts = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    if not parts:
        return not anchored or path == first
    position = len(first)
    last = parts.pop() if anchored else ""
    for part in parts:
        position = path.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return path.endswith(last) and len(path) - len(last) >= position
