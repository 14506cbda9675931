"""What is known of content before links are claimed: need they be followed, and do they lead into a trap?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from crawlspace.content.text import LEAST_TEXT
from crawlspace.frontier.content_rows import TEXT_BYTES, PageRow, number_of, text_key
from crawlspace.frontier.settings import CLASSES, FrontierSettings
from crawlspace.policy.traps import LEADING, Tread, shape_of, tread
from crawlspace.types import HOST_BYTES, Claim, Copied, Lease, Reason, host_id

PAIRS: Final = 5
"""Copies of a host whose links were followed in vain, after which those with a short text are not followed either."""

Treads = Mapping[int, Mapping[str, int]]
"""Runs of the shapes that are slowed or stopped, by host and shape."""


def led(claims: Iterable[Claim]) -> list[int]:
    """Numbers of the hosts of claims that a trap could have led to."""
    hosts = {claim.address.key[:HOST_BYTES] for claim in claims if _is_led(claim)}
    return sorted(map(host_id, hosts))


def trodden(claims: Sequence[Claim], treads: Treads, settings: FrontierSettings) -> Sequence[Claim]:
    """The claims, those of slowed shapes in the last class, those of stopped ones refused."""
    if not treads:
        return claims
    return [_trod(claim, treads.get(host_id(claim.address.key)), settings) for claim in claims]


def warned(leases: Sequence[Lease], treads: Treads, settings: FrontierSettings) -> list[Lease]:
    """The leases, each with the shapes of its host's addresses that are refused."""
    return [_warned(lease, treads.get(lease.host.hid, {}), settings) for lease in leases]


def _warned(lease: Lease, shapes: Mapping[str, int], settings: FrontierSettings) -> Lease:
    traps = frozenset(shape for shape, run in shapes.items() if tread(run, settings.traps) is Tread.NOT)
    return replace(lease, host=replace(lease.host, traps=traps)) if traps else lease


def _trod(claim: Claim, shapes: Mapping[str, int] | None, settings: FrontierSettings) -> Claim:
    run = shapes.get(shape_of(claim.address.canonical)) if shapes and _is_led(claim) else None
    match Tread.FREELY if run is None else tread(run, settings.traps):
        case Tread.NOT:
            return replace(claim, refusal=Reason.TRAP)
        case Tread.SLOWLY:
            return replace(claim, front_class=CLASSES - 1)
        case _:
            return claim


def _is_led(claim: Claim) -> bool:
    return claim.refusal is None and claim.relation in LEADING


def least_run(settings: FrontierSettings) -> int:
    """The shortest run that matters; 0 when none does."""
    asked = [run for run in (settings.traps.slow_after, settings.traps.stop_after) if run]
    return min(asked, default=0)


def keys_of(page: Copied) -> tuple[int, int]:
    """The numbers under which pages like this one may be known: by its text, and by text and links."""
    seen = page.fingerprints
    return text_key(seen.text, seen.language), number_of(seen.follow)


def stopped_by(
    page: Copied, said: Mapping[int, int], firsts: Mapping[int, PageRow], depths: Mapping[int, int], *, proven: bool
) -> int | None:
    """The page on whose account the links of another need not be followed; None when they are.

    `depths` holds those of `firsts` that are done; `proven`: the host has shown that its copies bring nothing.
    """
    seen = page.fingerprints
    for key in keys_of(page):
        first = firsts.get(said.get(key, -1))
        if first is None or first.id == page.id or not _says_and_leads(first, page):
            continue
        depth = depths.get(first.id)
        # Links of a page that is nearer to a seed may yet get further than those of the first did.
        if depth is not None and depth <= page.depth and (proven or (first.whole and seen.length >= LEAST_TEXT)):
            return first.id
    return None


def _says_and_leads(first: PageRow, page: Copied) -> bool:
    """Whether two pages have one text, one language and the same links."""
    seen = page.fingerprints
    same_text = first.text == seen.text[:TEXT_BYTES] and first.language == seen.language
    return same_text and first.follow == number_of(seen.follow)
