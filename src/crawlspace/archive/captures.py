"""A capture as WARC records, and back: the response first, then the request that asked for it, then what was made of
it. Pure.

The response's block is what came on the wire, head and body as one, with chunk framing and content coding still on.
Where the head ends is told by HTTP alone (RFC 9112, section 2.1), so that nothing but the block is needed to take it
apart again. The port of the address is not kept: the standard's field holds an address only.

A payload that an earlier capture has is not written again: a `revisit` record (WARC 1.1, section 6.7) has the head
and names that capture, by URL and date as the standard wants it and by file and offset for us.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from crawlspace.archive.record import (
    BrokenRecord,
    Record,
    date_of,
    date_text,
    encode,
    lay_out,
    moment,
    plain,
    record_ids,
    sha1_name,
    sha1_names,
)
from crawlspace.errors import Bug
from crawlspace.exchange import RENDERED_TYPE, Capture, Facts, Reference, Rendered, Truncated
from crawlspace.types import Pointer

RESPONSE, REVISIT, REQUEST, METADATA, CONVERSION = "response", "revisit", "request", "metadata", "conversion"
CAPTURES = frozenset({RESPONSE, REVISIT})
"""Types of record that are a capture."""
RENDERED = "Crawlspace-Rendered"
"""Field of a response behind whose records a browser's rendering of it lies."""
FACTS_TYPE = "application/vnd.crawlspace.facts+json;version=1"

_PROFILES = "http://netpreserve.org/warc/1.1/revisit/"
SAME_PAYLOAD = _PROFILES + "identical-payload-digest"
NOT_MODIFIED = _PROFILES + "server-not-modified"
_FACTS = msgspec.json.Decoder(Facts)
_ENCODER = msgspec.json.Encoder()
_FILE = "WARC-Refers-To-Filename"
_OFFSET = "WARC-Refers-To-File-Offset"
_NUMBER = re.compile(r"[0-9]{1,18}")

_EMPTY_LINE = re.compile(rb"\n\r?\n")
_LOOKS_EMPTY = re.compile(rb"\n[^!-~\n]*\n")
"""A line without a visible character, which many readers take for the end of the head."""
_STATUS = re.compile(rb"[^ \t\r\n]+[ \t]+([0-9]{3})(?![0-9])")
_ADDRESS = re.compile(
    r"\[(?P<six>[0-9A-Fa-f:.]+)[^\]]*\](?::\d+)?|(?P<four>[0-9.]+)(?::\d+)?|(?P<bare>[0-9A-Fa-f:.]+)"
)


class Place(NamedTuple):
    """Where a capture goes; makes the ids of its records."""

    file: str
    offset: int
    warcinfo: str
    """Id of the record at the head of the file."""


class Written(NamedTuple):
    """The records of one capture, each as bytes."""

    response: bytes
    payload_digest: str
    behind: list[bytes]
    """The records that follow it: request, facts, what a browser made of it; as far as they are there."""


def records_of(capture: Capture, place: Place, *, metadata: bool = True) -> Written:
    """The records of a capture whose response lies at `place`: a revisit's when it refers to another.

    Of each page that is fetched, so the fields are written as text at once: of what they hold only the address comes
    from outside, and is made one line.
    """
    head = capture.response_head.lstrip(b"\r\n")
    if not head:
        raise Bug(f"a response without a head was to be archived: {capture.url}")
    payload = b"" if capture.refers_to else capture.payload
    facts = _ENCODER.encode(capture.facts) if metadata and capture.facts is not None else b""
    digest, payload_digest, asked_digest, facts_digest = sha1_names(
        (head, payload), (capture.payload,), (capture.request_head, capture.request_body), (facts,)
    )
    target = f"WARC-Target-URI: {plain(capture.url)}\r\nWARC-Warcinfo-ID: {place.warcinfo}\r\n"
    common = f"\r\nWARC-Date: {date_text(capture.at)}\r\n{target}"
    name, asked, made, seen = record_ids(4, place.file, str(place.offset), str(capture.at), digest)
    own = _response_fields(capture, head, payload_digest)
    fields = f"{name}{common}{own}WARC-Block-Digest: {digest}\r\nContent-Type: application/http;msgtype=response"
    response = lay_out(REVISIT if capture.refers_to else RESPONSE, fields, head, payload)
    common += f"WARC-Concurrent-To: {name}\r\nWARC-Block-Digest: "
    behind = []
    if capture.request_head:
        spoken = f"\r\nWARC-Protocol: {plain(capture.protocol)}" if capture.protocol else ""
        fields = f"{asked}{common}{asked_digest}{spoken}\r\nContent-Type: application/http;msgtype=request"
        behind.append(lay_out(REQUEST, fields, capture.request_head, capture.request_body))
    if facts:
        fields = f"{made}{common}{facts_digest}\r\nContent-Type: {FACTS_TYPE}"
        behind.append(lay_out(METADATA, fields, facts))
    if capture.rendered is not None:
        behind.append(_conversion(capture.rendered, seen, target, name))
    return Written(response, payload_digest, behind)


def _response_fields(capture: Capture, head: bytes, payload_digest: str) -> str:
    """The fields that only some responses have, each with the end of its line."""
    own = _reference(capture, capture.refers_to) if capture.refers_to else ""
    if address := bare_address(capture.address):
        own += f"WARC-IP-Address: {address}\r\n"
    if capture.protocol:
        own += f"WARC-Protocol: {plain(capture.protocol)}\r\n"
    if capture.truncated:
        own += f"WARC-Truncated: {capture.truncated.value}\r\n"
    if capture.rendered:
        own += f"{RENDERED}: yes\r\n"
    if _ends_plainly(head) and not is_not_modified(capture):
        own += f"WARC-Payload-Digest: {payload_digest}\r\n"
    return own


def _conversion(rendered: Rendered, name: str, target: str, response: str) -> bytes:
    """What a browser made of a response (WARC 1.1, section 6.8); `response` is the id of that record."""
    cut = f"WARC-Truncated: {Truncated.LENGTH.value}\r\n" if rendered.truncated else ""
    fields = (
        f"{name}\r\nWARC-Date: {date_text(rendered.at)}\r\n{target}WARC-Refers-To: {response}\r\n{cut}"
        f"WARC-Block-Digest: {sha1_name(rendered.html)}\r\nContent-Type: {RENDERED_TYPE.decode()}"
    )
    return lay_out(CONVERSION, fields, rendered.html)


def warcinfo_record(place: Place, at: int, facts: Sequence[tuple[str, str]]) -> tuple[bytes, str]:
    """The record at the head of a file, and its id."""
    block = "".join(f"{name}: {_one_line(value)}\r\n" for name, value in facts).encode("utf-8", "replace")
    digest = sha1_name(block)
    (name,) = record_ids(1, place.file, str(place.offset), str(at), digest)
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
    return request.kind == REQUEST and belongs(request, response)


def belongs(record: Record, response: Record) -> bool:
    """Whether a record says that it is of the same event as the response."""
    name = response.fields.get("warc-record-id")
    return name is not None and record.fields.get("warc-concurrent-to") == name


def is_rendered(response: Record) -> bool:
    """Whether a browser's rendering lies behind the response."""
    return RENDERED.lower() in response.fields


def is_conversion_of(record: Record, response: Record) -> bool:
    """Whether it is the browser's rendering of this response."""
    named = record.fields.get("warc-refers-to")
    return record.kind == CONVERSION and named is not None and named == response.fields.get("warc-record-id")


def rendered_of(conversion: Record | None) -> Rendered | None:
    """What a browser made of a response; None where there is no such record."""
    if conversion is None:
        return None
    return Rendered(conversion.block, date_of(conversion), truncated="warc-truncated" in conversion.fields)


def facts_of(metadata: Record | None) -> Facts | None:
    """What a metadata record of ours says; None for any other."""
    if metadata is None or metadata.fields.get("content-type") != FACTS_TYPE:
        return None
    try:
        return _FACTS.decode(metadata.block)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def reference_of(record: Record) -> Reference | None:
    """What a revisit record refers to; None for other records.

    One that names no capture refers to some earlier one of its own URL (WARC 1.0).
    """
    fields = record.fields
    if record.kind != REVISIT:
        return None
    url = fields.get("warc-refers-to-target-uri") or fields.get("warc-target-uri", "")
    file, offset = fields.get(_FILE.lower(), ""), fields.get(_OFFSET.lower(), "")
    # The length is found where it lies: whoever opens the reference must look at the record anyway.
    pointer = Pointer(file, int(offset), 0) if file and _NUMBER.fullmatch(offset) else None
    try:
        return Reference(url, moment(fields.get("warc-refers-to-date", "")), pointer)
    except BrokenRecord:
        return Reference(url, date_of(record), pointer)


def lacks_payload(record: Record) -> bool:
    """Whether what was sent must be taken from the capture that the record refers to."""
    return record.kind == REVISIT and not record.fields.get("warc-profile", "").endswith("server-not-modified")


def with_payload(capture: Capture, response: Record, payload: bytes) -> Capture:
    """A revisit with the bytes that it did not repeat; raises `BrokenRecord` when its digest is not theirs."""
    stated = response.fields.get("warc-payload-digest")
    if stated is not None and stated.startswith("sha1:") and stated != sha1_name(payload):
        raise BrokenRecord("the capture to which it refers has another payload")
    return replace(capture, payload=payload)


def capture_of(response: Record, request: Record | None, conversion: Record | None = None) -> Capture:
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
        protocol="h2" if response.fields.get("warc-protocol") == "h2" else "",
        method=request_head.partition(b" ")[0].decode("latin-1") if request_head else "GET",
        refers_to=reference_of(response),
        rendered=rendered_of(conversion),
    )


def _reference(capture: Capture, refers: Reference) -> str:
    profile = NOT_MODIFIED if is_not_modified(capture) else SAME_PAYLOAD
    fields = (
        f"WARC-Profile: {profile}\r\nWARC-Refers-To-Target-URI: {plain(refers.url)}\r\n"
        f"WARC-Refers-To-Date: {date_text(refers.at)}\r\n"
    )
    if refers.pointer:
        fields += f"{_FILE}: {plain(refers.pointer.file)}\r\n{_OFFSET}: {refers.pointer.offset}\r\n"
    return fields


def is_not_modified(capture: Capture) -> bool:
    """Whether it says only that an earlier capture is still right."""
    return capture.refers_to is not None and capture.status == 304


def _ends_plainly(head: bytes) -> bool:
    """Whether all readers agree where the payload begins; only then its digest means the same to all."""
    found = _LOOKS_EMPTY.search(head)
    return found is not None and found.end() == len(head)


def _split(block: bytes) -> tuple[bytes, bytes]:
    found = _EMPTY_LINE.search(block)
    end = found.end() if found else len(block)
    return block[:end], block[end:]


def bare_address(address: str) -> str:
    """The IP address alone, as records have it; empty when there is none."""
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
