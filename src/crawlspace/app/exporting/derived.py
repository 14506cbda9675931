"""Records made of captured pages, in the two forms that users of Common Crawl know: WET and WAT.

WET has a `conversion` record with the plain text of each page, WAT a `metadata` record with JSON that says what heads
and page hold. Both name the response they were made of.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from crawlspace.app.exporting.sources import Read
from crawlspace.archive.cdxj import payload_digest
from crawlspace.archive.record import Record, encode, record_id, sha1_name, spelled
from crawlspace.exports.columns import plain
from crawlspace.pages.links import Page
from crawlspace.types import Pointer, Relation

_PATHS = {
    Relation.HYPERLINK: "A@/href",
    Relation.FRAME: "FRAME@/src",
    Relation.REFRESH: "META@/http-equiv",
    Relation.CANONICAL: "LINK@/href",
    Relation.ALTERNATE: "LINK@/href",
}
"""Where a link stands, in the words of WAT; for relations that do not say by which element, `LINK@/href`."""


def conversion(response: Record, page: Page, text: str, warcinfo: str) -> bytes:
    """The record with a page's text."""
    block = f"{text}\n".encode("utf-8", "replace")
    language = [("WARC-Identified-Content-Language", page.language)] if page.language else []
    return encode(
        [*_fields("conversion", response, block, warcinfo), *language, ("Content-Type", "text/plain")], block
    )


def metadata(response: Record, read: Read, pointer: Pointer, warcinfo: str) -> bytes:
    """The record with what a capture's heads and page say."""
    block = msgspec.json.encode(
        {
            "Container": {
                "Filename": pointer.file,
                "Offset": str(pointer.offset),
                "Compressed": not pointer.file.endswith(".warc"),
            },
            "Envelope": {
                "Format": "WARC",
                "WARC-Header-Metadata": {spelled(name): plain(value) for name, value in response.fields.items()},
                "Actual-Content-Length": str(len(response.block)),
                "Block-Digest": sha1_name(response.block),
                "Payload-Metadata": {
                    "Actual-Content-Type": "application/http; msgtype=response",
                    "HTTP-Response-Metadata": _http(response, read),
                },
            },
        }
    )
    return encode([*_fields("metadata", response, block, warcinfo), ("Content-Type", "application/json")], block)


def _fields(kind: str, response: Record, block: bytes, warcinfo: str) -> Iterator[tuple[str, str]]:
    source = response.fields.get("warc-record-id", "")
    yield "WARC-Type", kind
    yield "WARC-Record-ID", record_id(kind, source, response.fields.get("warc-date", ""))
    yield "WARC-Date", response.fields.get("warc-date", "")
    yield "WARC-Target-URI", response.fields.get("warc-target-uri", "").removeprefix("<").removesuffix(">")
    yield "WARC-Warcinfo-ID", warcinfo
    if source:
        yield "WARC-Refers-To", source
    yield "WARC-Block-Digest", sha1_name(block)


def _http(response: Record, read: Read) -> dict[str, object]:
    result, page = read.result, read.page
    first = result.response_head.partition(b"\n")[0].decode("latin-1").split(None, 2)
    version, status, reason = (*first, "", "", "")[:3]
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in result.headers.raw}
    links = [
        {"path": _PATHS.get(link.relation, "LINK@/href"), "url": plain(link.url)}
        | ({"rel": "nofollow"} if link.nofollow else {})
        for link in page.links
    ]
    head: dict[str, object] = {"Title": plain(page.title)} if page.title else {}
    if page.canonical is not None:
        head["Link"] = [{"path": "LINK@/href", "rel": "canonical", "url": plain(page.canonical)}]
    return {
        "Response-Message": {"Status": status, "Version": version, "Reason": reason.strip()},
        "Headers-Length": str(len(result.response_head)),
        "Headers": headers,
        "Entity-Length": str(len(result.payload)),
        "Entity-Digest": f"sha1:{payload_digest(response, result.payload)}",
        "HTML-Metadata": {"Head": head, "Links": links, "Base": plain(page.base_url)},
    }
