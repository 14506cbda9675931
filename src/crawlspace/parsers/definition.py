"""What a parser is: a name, a version, the pages it is for, and what it makes of each.

@parser("product", 2, match="glob:https://shop.example/item/**", key="sku", significant=("price",))
def product(page):
    yield {"sku": page.first(".sku").text(), "price": page.first(".price").text()}

A version is a whole number or numbers with dots. It goes up when the same page would get other records: then, and
only then, the pages are parsed again. What a parser raises is kept with the capture and stops nothing.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct, field

from crawlspace.errors import UsageError
from crawlspace.pages.mime import HTML
from crawlspace.parsers.document import Document
from crawlspace.parsers.records import APART, Keying, Record, records_of
from crawlspace.policy.patterns import Patterns

_NAME: Final = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
_VERSION: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,5}")
DETAIL_LIMIT: Final = 500

Words = str | Sequence[str]
Parse = Callable[[Document], Any]
Routed = TypeVar("Routed", bound=Parse)


class Parsed(NamedTuple):
    """What one parser made of one capture."""

    parser: str
    version: str
    records: tuple[Record, ...] = ()
    error: str | None = None
    """What it raised, in one line."""
    significant: tuple[str, ...] = ()


class Match(Struct, frozen=True):
    """The pages that a parser is for: those that fit each kind of rule that has any."""

    url: Patterns
    host: tuple[str, ...] = ()
    type: tuple[str, ...] = ()
    label: tuple[str, ...] = ()

    @classmethod
    def of(cls, url: Words = (), *, host: Words = (), type: Words = (), label: Words = ()) -> Match:
        """`url` are patterns (RE2, or globs behind `glob:`), `host` names, where `*.example.com` are all below it.

        `type` are media types such as `application/json` or `image/*`; `html` is all that is read as HTML. Raises
        `ConfigError` for a pattern that is none.
        """
        return cls(Patterns.of(_words(url), "match"), _words(host), _words(type), _words(label))

    def may_fit(self, url: str, host: str, mime: str | None, label: str | None) -> bool:
        """Whether a page that was not read yet can be one of them; False is certain."""
        return (
            (not self.label or label in self.label)
            and (not self.host or any(_is_host(host, name) for name in self.host))
            and (not self.type or mime is None or any(_may_be(mime, name) for name in self.type))
            and (not self.url.texts or self.url.match(url))
        )

    def fits(self, page: Document) -> bool:
        """Whether a page is one of them."""
        return (
            (not self.label or page.label in self.label)
            and (not self.host or any(_is_host(page.host, name) for name in self.host))
            and (not self.type or any(_is_type(page, name) for name in self.type))
            and (not self.url.texts or self.url.match(page.url))
        )


class Parser(Struct, frozen=True):
    """A parser, ready to run. Calling it gives what the function gives."""

    name: str
    version: str
    parse: Parse
    match: Match = field(default_factory=Match.of)
    keying: Keying = field(default_factory=Keying)

    def __call__(self, page: Document) -> Any:
        return self.parse(page)

    def run(self, page: Document) -> Parsed | None:
        """What it makes of a page; None when the page is none of its own."""
        if not self.match.fits(page):
            return None
        try:
            records = records_of(self.parse(page), self.keying, page.host)
        except Exception as error:  # whatever a page or a user's code does to us is kept, and stops nothing
            return Parsed(self.name, self.version, error=told(error), significant=self.keying.significant)
        return Parsed(self.name, self.version, records, significant=self.keying.significant)

    @property
    def rank(self) -> tuple[int, ...]:
        """Its version as numbers, which compare."""
        return rank_of(self.version)


def parser(  # noqa: PLR0913 -- what a person says of a parser, each by name
    name: str,
    version: int | str,
    *,
    match: Words | Match = (),
    key: Words = (),
    per_host: bool = True,
    significant: Words = (),
    apart: Words = APART,
) -> Callable[[Any], Parser]:
    """Decorate a function of a page, or a class with a method `parse`, to be a parser.

    `key` are the fields that say what a record is of, or `PAGE_KEY` when a page has one record; `significant` those
    whose change always counts; `apart` those that tell versions of one thing apart. With `per_host=False` equal keys
    on different hosts are one thing. Raises `UsageError`.
    """
    require_name(name)
    keying = Keying(_words(key), per_host, _words(apart), _words(significant))
    rule = match if isinstance(match, Match) else Match.of(match)

    def decorate(code: Any) -> Parser:
        parse = code().parse if isinstance(code, type) else code
        if not callable(parse):
            raise UsageError(
                f"the parser {name!r} can do nothing", hint="decorate a function, or a class with `parse`"
            )
        return Parser(name, version_text(version), parse, rule, keying)

    return decorate


class Router:
    """A parser of several functions, each for its own pages; the first that fits gets the page.

    router = Router("shop", 1)

    @router.route("glob:https://shop.example/item/**")
    def item(page): ...
    """

    def __init__(self, name: str, version: int | str, **options: Any) -> None:
        """`options` are those of `parser`, `match` apart."""
        self._routes: list[tuple[Match, Parse]] = []
        self.parser: Parser = parser(name, version, **options)(self._dispatch)

    def route(self, url: Words = (), **rules: Words) -> Callable[[Routed], Routed]:
        """Decorate the function that gets pages that fit; rules as in `Match.of`, none of them for all others."""
        match = Match.of(url, **rules)

        def decorate(function: Routed) -> Routed:
            self._routes.append((match, function))
            return function

        return decorate

    def _dispatch(self, page: Document) -> Any:
        for match, function in self._routes:
            if match.fits(page):
                return function(page)
        return None


def as_parser(given: object) -> Parser:
    """A parser or a router as a parser; raises `UsageError` for anything else."""
    found = given.parser if isinstance(given, Router) else given
    if not isinstance(found, Parser):
        raise UsageError(
            f"{type(given).__name__!r} is no parser", hint="decorate it with @crawlspace.parser(name, version)"
        )
    return found


def require_name(name: str) -> None:
    """Raise `UsageError` for what is no name of a parser."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name for a parser", hint="small letters, digits, '.', '_' and '-', at most 64"
        )


def version_text(version: int | str) -> str:
    """A version as it is stored; raises `UsageError`."""
    text = str(version)
    if isinstance(version, bool) or not _VERSION.fullmatch(text):
        raise UsageError(f"{version!r} is no version of a parser", hint="a whole number, or numbers with dots: 1.2")
    return text


def rank_of(version: str) -> tuple[int, ...]:
    """A stored version as numbers, trailing zeros dropped."""
    numbers = [int(part) for part in version.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def told(error: Exception) -> str:
    """The failure in one line with the place where it happened."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{place}".encode("utf-8", "replace").decode()[:DETAIL_LIMIT]


def _words(given: Words) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _is_host(host: str, name: str) -> bool:
    return host.endswith(name[1:]) if name.startswith("*.") else host == name


def _is_type(page: Document, name: str) -> bool:
    return page.is_html if name == "html" else _may_be(page.type, name)


def _may_be(mime: str, name: str) -> bool:
    if name == "html":
        return mime in HTML
    return mime.startswith(name[:-1]) if name.endswith("/*") else mime == name
