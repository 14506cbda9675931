"""Patterns that users write about URLs: regular expressions and globs, many of them as one test.

They run on RE2, whose time is linear in the text whatever the pattern, so that neither a user's slip nor a page's
address can hang the crawl. A pattern is searched anywhere in the text. Behind `glob:` stands a glob, which must fit
the whole text: `*` is any run of characters but `/`, `**` any run at all, `?` one character but `/` (a literal `?`
among them), and everything else is itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import re2
from msgspec import Struct

from crawlspace.errors import ConfigError

GLOB = "glob:"

_WILDCARDS = re.compile(r"(\*\*|\*|\?)")
_MEANING = {"**": ".*", "*": "[^/]*", "?": "[^/]"}


class Patterns(Struct, frozen=True):
    """A list of patterns, compiled to one expression."""

    texts: tuple[str, ...]
    _expression: re2._Regexp

    @classmethod
    def of(cls, texts: Sequence[str], setting: str) -> Patterns:
        """Compile them; raises `ConfigError` that names `setting`, the pattern and the place of its fault."""
        alternatives = []
        for number, text in enumerate(texts, 1):
            name, source = f"{setting}, pattern {number} ({text!r})", _source(text)
            _compile(source, name)
            # In its brackets too: an open `\Q` is right alone and would swallow the patterns behind it.
            alternatives.append(f"(?:{source})")
            _compile(alternatives[-1], name)
        whole = "|".join(alternatives)
        return cls(tuple(texts), _compile(whole, f"{setting}, its {len(texts)} patterns together"))

    def match(self, text: str) -> bool:
        """Whether any of them fits; never when there are none."""
        return bool(self.texts) and self._expression.search(text) is not None


def _source(text: str) -> str:
    if not text.startswith(GLOB):
        return text
    parts = _WILDCARDS.split(text.removeprefix(GLOB))
    return f"^{''.join(_MEANING.get(part) or re2.escape(part) for part in parts)}$"


def _compile(source: str, name: str) -> re2._Regexp:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        return re2.compile(source, options)
    except re2.error as error:
        raise ConfigError(f"{name}: {_complaint(source, error)}") from error
    except UnicodeError as error:
        raise ConfigError(f"{name}: it is not Unicode text") from error


def _complaint(source: str, error: Exception) -> str:
    """RE2's words, with the place of the part they quote when it can be found."""
    message = error.args[0].decode("utf-8", "replace")
    part = message.partition(": ")[2]
    place = source.find(part) if part else -1
    return message if place < 0 else f"{message} (at character {place + 1})"
