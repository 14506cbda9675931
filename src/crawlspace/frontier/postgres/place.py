"""Where a crawl's store lies: an address such as `postgresql://crawler@db.example/web?schema=news&shards=64`.

`schema` and `shards` are ours, all else is libpq's. A password may stand in the address, but better in PGPASSWORD or
a password file: it is never shown, stored or logged here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit

from msgspec import Struct

from crawlspace.errors import UsageError
from crawlspace.types import HOST_BYTES

SCHEMES = ("postgresql", "postgres")
SCHEMA = "crawl"
SHARDS = 16
MOST_SHARDS = 1024

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_NOT_OURS = ("pg_", "information_schema", "public")
_SECRETS = frozenset({"password", "sslpassword"})


class Shards(Struct, frozen=True):
    """How hosts are spread: a shard is the first bits of a host's number. Fixed when a crawl is made."""

    number: int

    def of(self, hid: int) -> int:
        """The shard of a host."""
        return hid >> (8 * HOST_BYTES + 1 - self.number.bit_length())

    def each(self, hids: Iterable[int]) -> list[int]:
        """The shards of many hosts."""
        shift = 8 * HOST_BYTES + 1 - self.number.bit_length()
        return [hid >> shift for hid in hids]

    def of_keys(self, keys: Iterable[bytes]) -> list[int]:
        """The shards of many keys: of the first bits of each, as of their hosts."""
        shift = 17 - self.number.bit_length()
        return [(key[0] << 8 | key[1]) >> shift for key in keys]

    def of_key(self, key: bytes) -> int:
        """The shard of a key, or of the digest of some content."""
        return self.of(int.from_bytes(key[:HOST_BYTES], "big"))


class Place(Struct, frozen=True):
    """One crawl's schema in one database."""

    address: str
    """For libpq; may hold a password."""
    schema: str = SCHEMA
    shards: int = SHARDS
    """How many a new crawl gets; one that is there keeps its own."""
    shown: str = ""
    """The address for people and files: without secrets."""

    @staticmethod
    def names(text: str) -> bool:
        """Whether this text is such an address at all."""
        return text.partition("://")[0] in SCHEMES

    @classmethod
    def parse(cls, text: str) -> Place:
        """Read an address; raises `UsageError`."""
        try:
            parts = urlsplit(text)
            query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        except ValueError as error:
            raise UsageError(f"the frontier's address cannot be read: {error}") from None
        if parts.scheme not in SCHEMES or parts.fragment:
            raise UsageError(
                "the frontier's address begins with postgresql:// and has no fragment",
                hint="such as postgresql://crawler@localhost/web?schema=news",
            )
        own = {key: value for key, value in query if key in ("schema", "shards")}
        theirs = [(key, value) for key, value in query if key not in own]
        address = _spelled(parts, parts.netloc, theirs)
        public = [(key, value) for key, value in query if key not in _SECRETS]
        netloc = re.sub(r"^([^@]*?):[^@]*@", r"\1@", parts.netloc)
        schema, shards = _schema(own.get("schema", SCHEMA)), _shards(own.get("shards", str(SHARDS)))
        return cls(address, schema, shards, _spelled(parts, netloc, public))


def _spelled(parts: SplitResult, netloc: str, query: list[tuple[str, str]]) -> str:
    """The address again; the standard library would leave out the slashes in front of no host."""
    mark = "?" if query else ""
    return f"{parts.scheme}://{netloc}{parts.path}{mark}{urlencode(query, quote_via=quote)}"


def _schema(name: str) -> str:
    if not _NAME.fullmatch(name) or name.startswith(_NOT_OURS):
        raise UsageError(
            f"{name!r} cannot be the schema of a crawl",
            hint="small letters, digits and underscores, at most 63, not pg_... or public",
        )
    return name


def _shards(text: str) -> int:
    shards = int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 0
    if not 1 <= shards <= MOST_SHARDS or shards & (shards - 1):
        raise UsageError(f"shards={text!r} is no power of two from 1 to {MOST_SHARDS}")
    return shards
