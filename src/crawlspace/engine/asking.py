"""How a leased URL is asked for: from what the frontier knows of it to a request."""

from __future__ import annotations

from crawlspace.exchange import FetchRequest, FetchResult
from crawlspace.policy.recrawl import conditions
from crawlspace.policy.scope import BELONGINGS
from crawlspace.types import QueuedUrl, Relation

WHOLE = BELONGINGS | {Relation.SITEMAP_FILE}
"""Relations of what is read whatever its type."""


def request_for(url: QueuedUrl, route: str, *, whole: bool = False) -> FetchRequest:
    """The request for a URL on its way; `whole`: also where it has not changed."""
    spec = url.request
    if spec is None:
        by_type = url.relation not in WHOLE
        return FetchRequest(url.url, headers=() if whole else conditions(url.before), by_type=by_type, route=route)
    headers = (("Content-Type", spec.content_type),) if spec.content_type else ()
    return FetchRequest(url.url, spec.method, spec.body, headers, route=route)


def set_cookies(result: FetchResult) -> dict[str, str]:
    """Names and values that an answer sets, for the rest of this chain of redirects only."""
    pairs = (line.split(";", 1)[0].partition("=") for line in result.headers.all("set-cookie"))
    return {name.strip(): value.strip() for name, sign, value in pairs if sign and name.strip()}
