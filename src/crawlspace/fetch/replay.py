"""A capture read again: the bytes that came from the network once, through the reader that read them then.

What a browser had rendered reads as it was rendered.
"""

from __future__ import annotations

from crawlspace.exchange import Capture, FetchResult
from crawlspace.fetch.limits import FetchSettings
from crawlspace.fetch.response import ResponseReader


def result_of(capture: Capture, limits: FetchSettings) -> FetchResult:
    """The answer that was captured, decoded under `limits`; a capture that was cut reads as cut."""
    reader = ResponseReader(limits, bodiless=capture.method == "HEAD")
    # In two pieces, since joining them would copy the whole.
    if not reader.feed(capture.response_head) and not reader.feed(capture.payload):
        reader.lost(clean=True)
    result = FetchResult(
        url=capture.url,
        started_at=capture.at,
        error=reader.error,
        detail=reader.detail,
        status=reader.status,
        headers=reader.headers,
        request_head=capture.request_head,
        request_body=capture.request_body,
        response_head=reader.head,
        payload=reader.payload,
        body=reader.body,
        truncated=capture.truncated or reader.truncated,
        address=capture.address,
        protocol=capture.protocol,
    )
    return result if capture.rendered is None else result.showing(capture.rendered)
