"""Records of one event put together: a response, its request, and what was made of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from crawlspace.archive.captures import CAPTURES, METADATA, belongs, is_conversion_of, is_rendered, is_request_of
from crawlspace.archive.record import Record
from crawlspace.types import Pointer


class Stored(NamedTuple):
    """One capture as it lies in a file."""

    pointer: Pointer
    response: Record
    request: Record | None = None
    metadata: Record | None = None
    conversion: Record | None = None
    """What a browser made of it."""

    @property
    def is_whole(self) -> bool:
        """Whether no more of its records can follow."""
        seen = self.conversion is not None or not is_rendered(self.response)
        return seen and self.request is not None and self.metadata is not None


def gather(records: Iterable[tuple[Pointer, Record]]) -> Iterator[Stored]:
    """The captures among the records of a file, in their order; records of other kinds are passed over.

    What belongs to a response comes right behind it, as all writers of request and response pairs have it.
    """
    held: Stored | None = None
    for pointer, record in records:
        if record.kind in CAPTURES:
            if held is not None:
                yield held
            held = Stored(pointer, record)
            continue
        joined = held and joined_to(held, record)
        if held is not None and joined is None:
            yield held
        held = joined
    if held is not None:
        yield held


def joined_to(held: Stored, record: Record) -> Stored | None:
    """The capture with the record that follows it; None when that is none of its own."""
    if held.request is None and is_request_of(record, held.response):
        return held._replace(request=record)
    if held.metadata is None and record.kind == METADATA and belongs(record, held.response):
        return held._replace(metadata=record)
    if held.conversion is None and is_conversion_of(record, held.response):
        return held._replace(conversion=record)
    return None
