"""A capture as two WARC records, and back: the response first, then the request that asked for it. Pure.

The response's block is what came on the wire, head and body as one, with chunk framing and content coding still on.
Where the head ends is told by HTTP alone (RFC 9112, section 2.1), so that nothing but the block is needed to take it
apart again. The port of the address is not kept: the standard's field holds an address only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from crawlspace.archive.record import BrokenRecord, Record, date_of, date_text, encode, record_id, sha1_name
from crawlspace.errors import Bug
from crawlspace.exchange import Capture, Truncated

_EMPTY_LINE = re.compile(rb"\n\r?\n")
_LOOKS_EMPTY = re.compile(rb"\n[^!-~\n]*\n")
"""A line without a visible character, which many readers take for the end of the head."""
_STATUS = re.compile(rb"[^ \t\r\n]+[ \t]+([0-9]{3})(?![0-9])")
_ADDRESS = re.compile(
    r"\[(?P<six>[0-9A-Fa-f:.]+)[^\]]*\](?::\d+)?|(?P<four>[0-9.]+)(?::\d+)?|(?P<bare>[0-9A-Fa-f:.]+)"
)


class Place(NamedTuple):
    """Where a record goes; makes its id."""

    file: str
    offset: int
    warcinfo: str
    """Id of the record at the head of the file."""

    def id(self, kind: str, at: int, digest: str) -> str:
        return record_id(kind, self.file, str(self.offset), str(at), digest)


def response_record(capture: Capture, place: Place) -> tuple[bytes, str]:
    """The response's bytes and its id."""
    head = capture.response_head.lstrip(b"\r\n")
    if not head:
        raise Bug(f"a response without a head was to be archived: {capture.url}")
    block = head + capture.payload
    digest = sha1_name(block)
    name = place.id("response", capture.at, digest)
    fields = _common("response", name, capture, place)
    if address := _bare_address(capture.address):
        fields.append(("WARC-IP-Address", address))
    if capture.truncated:
        fields.append(("WARC-Truncated", capture.truncated.value))
    fields.append(("WARC-Block-Digest", digest))
    if _ends_plainly(head):
        fields.append(("WARC-Payload-Digest", sha1_name(capture.payload)))
    fields.append(("Content-Type", "application/http;msgtype=response"))
    return encode(fields, block), name


def request_record(capture: Capture, place: Place, response: str) -> bytes:
    """The request's bytes; `response` is the id of the record that it led to."""
    block = capture.request_head + capture.request_body
    digest = sha1_name(block)
    fields = _common("request", place.id("request", capture.at, digest), capture, place)
    fields.append(("WARC-Concurrent-To", response))
    fields.append(("WARC-Block-Digest", digest))
    fields.append(("Content-Type", "application/http;msgtype=request"))
    return encode(fields, block)


def warcinfo_record(place: Place, at: int, facts: Sequence[tuple[str, str]]) -> tuple[bytes, str]:
    """The record at the head of a file, and its id."""
    block = "".join(f"{name}: {_one_line(value)}\r\n" for name, value in facts).encode("utf-8", "replace")
    digest = sha1_name(block)
    name = place.id("warcinfo", at, digest)
    fields = [
        ("WARC-Type", "warcinfo"),
        ("WARC-Record-ID", name),
        ("WARC-Date", date_text(at)),
        ("WARC-Filename", place.file),
        ("WARC-Block-Digest", digest),
        ("Content-Type", "application/warc-fields"),
    ]
    return encode(fields, block), name


def is_request_of(request: Record, response: Record) -> bool:
    """Whether the two are one exchange."""
    name = response.fields.get("warc-record-id")
    return request.kind == "request" and name is not None and request.fields.get("warc-concurrent-to") == name


def capture_of(response: Record, request: Record | None) -> Capture:
    """The capture that these records hold; without a request its fields are empty and the method is GET.

    Raises `BrokenRecord` when the response's fields make no capture.
    """
    # Old writers took the grammar of WARC 1.0 by its letter and put the address in angle brackets.
    url = response.fields.get("warc-target-uri", "").removeprefix("<").removesuffix(">")
    if not url:
        raise BrokenRecord("it has no WARC-Target-URI")
    head, payload = _split(response.block)
    request_head, request_body = _split(request.block) if request else (b"", b"")
    status = _STATUS.match(head)
    return Capture(
        url=url,
        at=date_of(response),
        status=int(status.group(1)) if status else 0,
        request_head=request_head,
        request_body=request_body,
        response_head=head,
        payload=payload,
        truncated=_truncated(response.fields.get("warc-truncated")),
        address=response.fields.get("warc-ip-address", ""),
        method=request_head.partition(b" ")[0].decode("latin-1") if request_head else "GET",
    )


def _common(kind: str, name: str, capture: Capture, place: Place) -> list[tuple[str, str]]:
    return [
        ("WARC-Type", kind),
        ("WARC-Record-ID", name),
        ("WARC-Date", date_text(capture.at)),
        ("WARC-Target-URI", capture.url),
        ("WARC-Warcinfo-ID", place.warcinfo),
    ]


def _ends_plainly(head: bytes) -> bool:
    """Whether all readers agree where the payload begins; only then its digest means the same to all."""
    found = _LOOKS_EMPTY.search(head)
    return found is not None and found.end() == len(head)


def _split(block: bytes) -> tuple[bytes, bytes]:
    found = _EMPTY_LINE.search(block)
    end = found.end() if found else len(block)
    return block[:end], block[end:]


def _bare_address(address: str) -> str:
    found = _ADDRESS.fullmatch(address)
    return next(filter(None, found.groups())) if found else ""


def _truncated(word: str | None) -> Truncated | None:
    if word is None:
        return None
    try:
        return Truncated(word)
    except ValueError:
        # "unspecified" is legal too: all that matters to a reader is that the body is not whole.
        return Truncated.LENGTH


def _one_line(value: str) -> str:
    return " ".join(value.split())
