"""What is kept beside a response: how the URL was found, what became of it, and what was read of the page.

Made of values that are there anyway, when a URL's item is; links are kept as they stand in the page, so that nothing
is resolved twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from crawlspace.engine.commit import kind_of
from crawlspace.exchange import Capture, Facts, FetchResult, Outlink
from crawlspace.pages.links import Page
from crawlspace.pages.magic import detected_type
from crawlspace.types import Address, Moved, QueuedUrl, Refused, Relation, Released, Settlement, WasRedirect

TITLE_LIMIT = 500

_HYPERLINK = Relation.HYPERLINK.value
_OUTLINK = partial(tuple.__new__, Outlink)
"""Makes one of its values; see `pages.links`."""


class Known(Struct, frozen=True):
    """What is known of a URL when its answer has been read."""

    url: QueuedUrl
    address: Address | None
    result: FetchResult
    settlement: Settlement
    page: Page | None = None
    """What was read; None when nothing was, as of redirects and errors."""


def with_facts(captures: Sequence[Capture], known: Known) -> list[Capture]:
    """The captures of one URL, the last with the facts of it."""
    if not captures:
        return []
    return [*captures[:-1], replace(captures[-1], facts=facts_of(known))]


def facts_of(known: Known) -> Facts:
    """The facts of a URL that was asked for."""
    url, address, result, page, settlement = known.url, known.address, known.result, known.page, known.settlement
    assert not isinstance(settlement, Refused | Released)
    evidence = settlement.evidence
    prints = evidence.fingerprints
    return Facts(
        id=url.id,
        canonical=address.canonical if address else None,
        host=address.host if address else None,
        parent=url.parent,
        depth=url.depth,
        hops=url.hops,
        relation=str(url.relation),
        generation=url.generation,
        outcome=kind_of(settlement),
        error=evidence.error,
        detail=_storable(evidence.detail),
        elapsed_ms=evidence.elapsed_ms,
        detected=detected_type(result.headers, result.body),
        charset=page.charset if page else None,
        language=page.language if page else None,
        body_digest=evidence.digest.hex() if evidence.digest else None,
        text_digest=prints.text.hex() if prints else None,
        body_size=len(result.body),
        target=settlement.target if isinstance(settlement, WasRedirect | Moved) else None,
        declared=page.canonical if page else None,
        title=_storable(page.title[:TITLE_LIMIT]) if page else "",
        noindex=page.noindex if page else False,
        nofollow=page.nofollow if page else False,
        rendered=result.rendered.why if result.rendered else None,
        base=page.base_url if page else None,
        route=evidence.route or None,
        links=_outlinks(page) if page else (),
    )


def _storable(text: str) -> str:
    """Text of errors and pages without halves of characters, which no file can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _outlinks(page: Page) -> tuple[Outlink, ...]:
    if not page.contexts:
        make, usual, word = _OUTLINK, Relation.HYPERLINK, _HYPERLINK
        return tuple(
            [
                make((url, word if relation is usual else relation.value, "", nofollow))
                for url, relation, nofollow in page.links
            ]
        )
    pairs = zip(page.links, page.contexts, strict=True)
    return tuple([Outlink(link.url, link.relation.value, context.text, link.nofollow) for link, context in pairs])
