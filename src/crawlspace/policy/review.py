"""URLs that are known, looked at again: what the settings of now say of them, and what is to become of each.

Who claimed a URL under other settings is not asked again; all that a verdict needs is kept with it. What robots.txt,
a block or a person decided stands, whatever the settings say.
"""

from __future__ import annotations

from enum import StrEnum, unique
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from crawlspace.policy.scope import Scope
from crawlspace.types import Address, Reason, Relation, Unusable, host_id
from crawlspace.urls import Identity


@unique
class Shelf(StrEnum):
    """Where known URLs that can be looked at again lie."""

    QUEUED = "queued"
    DELAYED = "delayed"
    REFUSED = "refused"
    DEAD = "dead"


WAITING = (Shelf.QUEUED, Shelf.DELAYED)

Cursor = tuple[int | str, ...]
"""A place on a shelf; empty for its beginning. What it holds is the store's affair, but for the host number in
front of places among the refused."""

NEVER_REJUDGED = frozenset({Reason.ROBOTS, Reason.NOFOLLOW, Reason.BLOCKED_HOST, Reason.DROPPED, Reason.IMPORTED})
"""Refusals that are no matter of settings, or may be a page's own wish: a later link without it undoes that one."""


class Known(Struct, frozen=True):
    """A URL on a shelf."""

    shelf: Shelf
    id: int
    key: bytes
    url: str
    """The fetch URL."""
    host: str
    front_class: int
    depth: int
    hops: int
    relation: Relation
    reason: str | None = None
    """Refusal reason, or class of the dead letter."""
    status: int | None = None
    at: int = 0
    """When it was settled."""

    @property
    def hid(self) -> int:
        return host_id(self.key)


class Ruling(NamedTuple):
    """What is to become of a known URL: queued in this class, or refused for this reason."""

    known: Known
    refusal: Reason | None
    front_class: int


class Browsed(Struct, frozen=True):
    """Some of a shelf, and where the next begin; None at its end."""

    known: tuple[Known, ...]
    after: Cursor | None


def address_of(known: Known, identity: Identity) -> Address | None:
    """The address again; None when it is none under the limits of now."""
    address = identity.identify(known.url)
    return None if isinstance(address, Unusable) else replace(address, key=known.key)


def refusal_now(known: Known, scope: Scope, identity: Identity) -> Reason | None:
    """Why the scope of now refuses a URL; None when it does not."""
    address = address_of(known, identity)
    if address is None:
        return Reason.URL_LENGTH
    return scope.judge(address, depth=known.depth, hops=known.hops, relation=known.relation)


def rejudge(known: Known, scope: Scope, identity: Identity) -> Ruling | None:
    """What the settings of now make of a waiting or refused URL; None when it stays as it is.

    A refusal that names another reason than before stays as it was written.
    """
    if known.shelf is Shelf.REFUSED:
        if known.reason in NEVER_REJUDGED or refusal_now(known, scope, identity) is not None:
            return None
        return Ruling(known, None, known.front_class)
    refusal = refusal_now(known, scope, identity)
    return None if refusal is None else Ruling(known, refusal, known.front_class)
