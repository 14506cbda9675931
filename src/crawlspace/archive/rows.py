"""The row that a capture makes in the table of captures; the same while crawling and from the WARC files. Pure.

All is taken from what the archive keeps: the records' bytes and the facts beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from crawlspace.archive.captures import REVISIT, bare_address, facts_of, is_not_modified
from crawlspace.archive.cdxj import UNKNOWN, mime_of, payload_digest
from crawlspace.archive.stored import Stored
from crawlspace.exchange import Capture, Facts
from crawlspace.types import Pointer

Row = Sequence[Any]
"""Values in the order of `columns.COLUMNS`."""

_NOTHING = Facts()
_SHA1 = "sha1:"
_DEFAULT_PORTS = ("80", "443")


def row_of(pointer: Pointer, capture: Capture, payload_digest: str) -> Row:
    """The row of a capture that lies at `pointer`."""
    facts = capture.facts or _NOTHING
    refers = capture.refers_to
    mime = mime_of(capture.response_head).lower()
    head = capture.response_head.lstrip(b"\r\n")
    return (
        capture.url,
        facts.canonical,
        facts.host or host_of(capture.url),
        facts.id,
        capture.at,
        "response" if refers is None else "not_modified" if is_not_modified(capture) else REVISIT,
        facts.outcome,
        facts.error,
        capture.method,
        capture.status or None,
        None if mime == UNKNOWN else mime,
        facts.detected,
        facts.charset,
        facts.language,
        payload_digest.removeprefix(_SHA1),
        facts.body_digest,
        facts.text_digest,
        len(head) + len(capture.payload),
        facts.body_size,
        capture.truncated.value if capture.truncated else None,
        facts.elapsed_ms,
        facts.depth,
        facts.hops,
        facts.parent,
        facts.relation,
        facts.generation,
        facts.target,
        facts.declared,
        facts.noindex if facts.base is not None else None,
        facts.nofollow if facts.base is not None else None,
        len(facts.links) if facts.base is not None else None,
        refers.url if refers else None,
        refers.at if refers else None,
        bare_address(capture.address) or None,
        pointer.file,
        pointer.offset,
        pointer.length,
    )


def row_of_stored(stored: Stored, capture: Capture) -> Row:
    """The row of records that were read back; `capture` is theirs."""
    whole = replace(capture, facts=facts_of(stored.metadata))
    return row_of(stored.pointer, whole, payload_digest(stored.response, capture.payload))


def host_of(url: str) -> str:
    """The host of an address that comes without facts: its name in lower case, with a port that is unusual."""
    try:
        parts = urlsplit(url)
        name, port = parts.hostname or "", str(parts.port or "")
    except ValueError:
        return ""
    name = f"[{name}]" if ":" in name else name
    return name if port in ("", *_DEFAULT_PORTS) else f"{name}:{port}"
