"""Revisits of other makers' archives: captures without a payload, which another capture of the collection has.

The original is looked for among what the crawl knows by then: the capture of the URL that the revisit refers to, or
of its own URL where it names none. It is taken for it when its payload has the digest that the revisit states, or,
where that states none that can be compared, when it was made at the second that the revisit names.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from crawlspace.app.compose import OpenCrawl
from crawlspace.app.importing.captures import Found
from crawlspace.archive.record import sha1_name
from crawlspace.errors import StoreDamaged
from crawlspace.exchange import Capture
from crawlspace.types import Address, Pointer, Story

ABSENT = "revisits whose original is not in the sources"
OTHER = "revisits whose original has another payload by now"

_SHA1 = "sha1:"
_SHA1_LENGTH = len(_SHA1) + 32


async def whole(crawl: OpenCrawl, revisits: Sequence[Found]) -> list[Found | str]:
    """Each revisit as a capture with its payload, or why there is none. What was handed over must be settled."""
    addresses = [crawl.identity.identify(_refers_to(each)) for each in revisits]
    keys = list({address.key: None for address in addresses if isinstance(address, Address)})
    stories = dict(zip(keys, await crawl.frontier.find(keys), strict=True))
    found: list[Found | str] = []
    for each, address in zip(revisits, addresses, strict=True):
        story = stories.get(address.key) if isinstance(address, Address) else None
        where = _pointer(story)
        original = None if where is None else _read(crawl, where)
        found.append(ABSENT if original is None else _joined(each, original))
    return found


def _joined(revisit: Found, original: Capture) -> Found | str:
    if not _is_original(revisit, original):
        return OTHER
    capture = replace(revisit.capture, payload=original.payload, refers_to=None)
    if not capture.status:
        # Some writers leave out the head too.
        capture = replace(capture, response_head=original.response_head, status=original.status)
    return Found(capture)


def _is_original(revisit: Found, original: Capture) -> bool:
    if original.truncated is not None or not original.status or original.status == 304:
        return False
    stated = "" if revisit.revisit is None else revisit.revisit.fields.get("warc-payload-digest", "")
    if stated.lower().startswith(_SHA1) and len(stated) == _SHA1_LENGTH:
        return stated[len(_SHA1) :].upper() == sha1_name(original.payload).removeprefix(_SHA1)
    refers = revisit.capture.refers_to
    return refers is not None and refers.at // 1000 == original.at // 1000


def _refers_to(revisit: Found) -> str:
    refers = revisit.capture.refers_to
    return revisit.capture.url if refers is None else refers.url.removeprefix("<").removesuffix(">")


def _pointer(story: Story | None) -> Pointer | None:
    return None if story is None or story.evidence is None else story.evidence.pointer


def _read(crawl: OpenCrawl, pointer: Pointer) -> Capture | None:
    try:
        return crawl.archive.open(pointer)
    except StoreDamaged:
        return None
