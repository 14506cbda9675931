"""Links on their way in: as found, as judged, and the frontier's answer."""

from __future__ import annotations

from enum import IntEnum, StrEnum, unique
from typing import NamedTuple

from msgspec import Struct

from crawlspace.types.identity import Address, RequestSpec


@unique
class Relation(StrEnum):
    """How a link was found. `styled`: in a requisite's style sheet; `hint`: in a form or attribute, by a setting."""

    SEED = "seed"
    HYPERLINK = "hyperlink"
    FRAME = "frame"
    REFRESH = "refresh"
    REDIRECT = "redirect"
    SITEMAP = "sitemap"
    SITEMAP_FILE = "sitemap_file"
    """A sitemap itself: named by robots.txt or an index, or at a well-known place; its depth counts files."""
    CANONICAL = "canonical"
    ALTERNATE = "alternate"
    REQUISITE = "requisite"
    STYLED = "styled"
    HINT = "hint"
    USER = "user"
    """Added by a handler or a hook."""


class Link(NamedTuple):
    """A link as it stands in a page: text, not yet resolved."""

    url: str
    relation: Relation = Relation.HYPERLINK
    nofollow: bool = False


@unique
class Reason(StrEnum):
    """Why a URL is refused. The words are stored and shown, and never change their meaning."""

    OUT_OF_SCOPE = "out_of_scope"
    EXCLUDED = "excluded"
    NOT_INCLUDED = "not_included"
    DEPTH = "depth"
    PATH_DEPTH = "path_depth"
    PARAM_LIMIT = "param_limit"
    PATH_REPEAT = "path_repeat"
    URL_LENGTH = "url_length"
    REDIRECT_CHAIN = "redirect_chain"
    HOST_BUDGET = "host_budget"
    DOMAIN_HOSTS = "domain_hosts"
    """Its domain has as many hosts as it may have, and this is one more."""
    ADDRESS_HOSTS = "address_hosts"
    """Its host's address has as many hosts as it may have, and this is one more."""
    ROBOTS = "robots"
    NOFOLLOW = "nofollow"
    BLOCKED_HOST = "blocked_host"
    TRAP = "trap"
    DROPPED = "dropped"
    IMPORTED = "imported"
    """Visited before by another program, which left no capture."""


PATH_DEPENDENT = frozenset(
    {
        Reason.DEPTH,
        Reason.NOFOLLOW,
        Reason.HOST_BUDGET,
        Reason.DOMAIN_HOSTS,
        Reason.ADDRESS_HOSTS,
        Reason.REDIRECT_CHAIN,
        Reason.TRAP,
    }
)
"""Refusals that say something of the way to a URL, not of the URL: a better way undoes them."""


class Claim(Struct, frozen=True):
    """A link that was read, resolved and judged, on its way in. `lifts` is a refusal that no longer holds."""

    address: Address
    depth: int = 0
    """Links followed from a seed."""
    hops: int = 0
    """Redirects in a row that led here."""
    front_class: int = 5
    """0 leaves first, 9 last."""
    parent: int | None = None
    """Number of the URL whose page or redirect gave it."""
    relation: Relation = Relation.HYPERLINK
    label: str | None = None
    meta: str | None = None
    """JSON object, 1 KiB at most."""
    request: RequestSpec | None = None
    refusal: Reason | None = None
    """Set when scope or a trap forbids it: kept as skipped, with this reason."""
    seed_host: bool = False
    """The host is a seed's own: another page budget applies."""
    lifts: Reason | None = None
    modified: int | None = None
    """When the page was last changed, as a sitemap has it: what was fetched before is visited again soon."""


@unique
class Claimed(IntEnum):
    """The frontier's answer to one claim."""

    NEW = 0
    """Queued now, or kept as skipped when the claim carried a refusal."""
    KNOWN = 1
    """Claimed before, whoever found it."""
    OVER_BUDGET = 2
    """The host's queue or the store of its refusals is full; counted, not kept."""
