"""What a parser makes of a page, brought into one form: sorted JSON, its digest, and the key that says what it is of.

The digest is SHA-256 of the record's JSON with all names sorted: equal for equal content, whatever type or order it
was given in. The key says when two records are of one thing. A parser declares the fields that it is made of, or
says that a page has one record; without that the record's text speaks for it, with what changes on every visit masked
as `content.volatile` does. Fields marked as significant, and those that tell versions of a thing apart, are part of
such a key as they stand, so that no rule about near copies folds them away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from crawlspace.content.text import plain_text
from crawlspace.errors import UsageError

RECORD_LIMIT: Final = 16 << 20
"""Bytes of a record's JSON."""
RECORDS_LIMIT: Final = 100_000
"""Records of one page."""
APART: Final = ("language", "lang", "size", "color", "colour")
"""Fields that tell versions of one thing apart, where a record has them."""
PAGE_KEY: Final = "page"
"""Said instead of fields: each page has one record, and its canonical URL is the key."""

_encode = msgspec.json.Encoder(order="sorted").encode
_DEPTH: Final = 100


class Unfit(UsageError):
    """A parser gave something that makes no record."""


class Item(msgspec.Struct, frozen=True):
    """A record with what its parser has to say of it."""

    data: Any
    """A mapping, dataclass, attrs, pydantic or msgspec object."""
    key: str | None = None
    """What it is of, when the declared fields do not tell."""
    twins: tuple[str, ...] = ()
    """Addresses where the same is told in another form, such as an API's: linked, not merged."""


class Record(NamedTuple):
    """A record as it is kept."""

    key: str | None
    """None: the page's canonical URL."""
    digest: str
    """SHA-256 of `data`, hexadecimal."""
    data: bytes
    """JSON object, names sorted."""
    twins: tuple[str, ...] = ()


class Keying(msgspec.Struct, frozen=True):
    """How the key of a parser's records is made."""

    fields: tuple[str, ...] = ()
    """Fields that say what a record is of; `(PAGE_KEY,)`: the page; none: its text."""
    per_host: bool = True
    """Whether equal fields on two hosts are two things."""
    apart: tuple[str, ...] = APART
    significant: tuple[str, ...] = ()

    def of(self, data: Mapping[str, Any], host: str) -> str | None:
        """The key of one record; raises `Unfit` when it lacks a field that the key is made of."""
        if self.fields == (PAGE_KEY,):
            return None
        if not self.fields:
            return f"text:{sha256(self._text(data)).hexdigest()[:32]}"
        missing = [name for name in self.fields if data.get(name) in (None, "")]
        if missing:
            raise Unfit(f"a record has no {missing[0]!r}, of which its key is made")
        versions = {name: data[name] for name in self.apart if data.get(name) is not None and name not in self.fields}
        return self.named([[data[name] for name in self.fields], versions], host)

    def named(self, key: object, host: str) -> str:
        """A key that is told, within its host where keys are per host."""
        return _encode([host if self.per_host else "", key]).decode()

    def _text(self, data: Mapping[str, Any]) -> bytes:
        text = plain_text(" ".join(_leaves(data, _DEPTH)))
        exact = {name: data[name] for name in (*self.significant, *self.apart) if data.get(name) is not None}
        return text.encode("utf-8", "replace") + b"\n" + _encode(exact)


def records_of(given: object, keying: Keying, host: str) -> tuple[Record, ...]:
    """All records of one page, from whatever its parser returned; raises `Unfit`, and what the parser raises."""
    found: list[Record] = []
    for each in each_of(given):
        if len(found) == RECORDS_LIMIT:
            raise Unfit(f"a page gave more than {RECORDS_LIMIT} records")
        found.append(_record(each, keying, host))
    return tuple(found)


def each_of(given: object) -> Iterable[object]:
    """The records in what a parser returned: None is no record; an iterable that is no record itself is many."""
    if given is None:
        return ()
    is_one = isinstance(given, Mapping | str | bytes) or hasattr(given, "model_dump")
    return given if isinstance(given, Iterable) and not is_one else (given,)


def _record(given: object, keying: Keying, host: str) -> Record:
    item = given if isinstance(given, Item) else Item(given)
    values, data = _as_json(item.data)
    if len(data) > RECORD_LIMIT:
        raise Unfit(f"a record is {len(data)} bytes as JSON; {RECORD_LIMIT} is the most")
    key = keying.of(values, host) if item.key is None else keying.named(item.key, host)
    return Record(key, sha256(data).hexdigest(), data, item.twins)


def _as_json(given: object) -> tuple[dict[str, Any], bytes]:
    """A record's fields, and their JSON."""
    if type(given) is dict:
        try:
            # Nearly all are such, of plain values: they need not be gone through.
            return given, _encode(given)
        except (TypeError, ValueError, RecursionError):
            pass
    values = as_mapping(given)
    return values, _encode(values)


def as_mapping(given: object) -> dict[str, Any]:
    """A record's fields as plain values; raises `Unfit` for what has none."""
    model_dump = getattr(given, "model_dump", None)
    plain = model_dump(mode="json") if callable(model_dump) else given
    try:
        values = msgspec.to_builtins(plain, str_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise Unfit(f"a record cannot be JSON: {error}") from None
    if not isinstance(values, dict):
        raise Unfit(f"a parser gave {type(given).__name__!r}, which has no named fields")
    cleaned: dict[str, Any] = _clean(values, _DEPTH)
    return cleaned


def _clean(value: Any, depth: int) -> Any:
    """Text that no encoding can write is replaced: JSON on a page may hold half of a character."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if depth == 0 and isinstance(value, dict | list):
        raise Unfit(f"a record is nested more than {_DEPTH} deep")
    if isinstance(value, dict):
        return {_clean(name, 1): _clean(inner, depth - 1) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(inner, depth - 1) for inner in value]
    return value


def _leaves(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name in sorted(value):
            yield from _leaves(value[name], depth - 1)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield from _leaves(inner, depth - 1)
    elif value is not None:
        yield str(value)
