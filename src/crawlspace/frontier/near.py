"""Fingerprints found by nearness, as a store keeps them: a row for each value of a band, its members packed.

Two numbers of 64 bits within d bits are equal in one of d + 1 bands (`content.simhash`). All that share a band's
value lie in one row, each with what the band does not say of it and with the number of its page: ten bytes at
distance 3. A look-up reads d + 1 rows. It need not compare whole numbers: among d + 1 bands in a circle with d
differing bits in all there is one that is equal and is followed by one that differs in a bit at most (the cycle
lemma: Dvoretzky and Motzkin, 1947). So the bands that follow, the *leads*, stand first in a row and are compared all
at once, as one long integer; next to none is left to be compared whole.

What is kept is SimHash exclusive-or `kin`: pages that may not be merged are as far apart as chance has it, those that
may are as near as their texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from crawlspace.content.simhash import BITS

MEMBERS_LIMIT: Final = 1_024
"""Members of a row: what a look-up may cost. Sixty million pages fill them evenly at distance 3."""
ID_BYTES: Final = 4
"""Of a page's number; a page beyond four thousand million is looked for under another number, and not found there."""
_IDS: Final = (1 << 8 * ID_BYTES) - 1
_ALL: Final = (1 << BITS) - 1
_BAND_SHIFT: Final = 32
_DISTANCE_SHIFT: Final = 36
"""Distance, number and bits of a band make its key: those of another distance are other rows."""


class Hit(NamedTuple):
    """A fingerprint within the distance."""

    distance: int
    number: int
    """The page that it is of, as far as `ID_BYTES` tell."""


class _Band(NamedTuple):
    """Where a band lies. Bits are counted in the number turned so that the band stands highest."""

    start: int
    """First part of its keys."""
    turn: int
    key_shift: int
    lead_shift: int
    lead_mask: int
    rest_mask: int
    lead_bytes: int
    rest_bytes: int

    @property
    def size(self) -> int:
        """Bytes of a member."""
        return self.lead_bytes + self.rest_bytes + ID_BYTES


class Slot(NamedTuple):
    """What stands for a fingerprint in one band."""

    key: int
    band: _Band
    lead: int
    rest: int


def slots(value: int, distance: int) -> list[Slot]:
    """The rows of a fingerprint and what stands in each; `distance` is 1 to 7."""
    found = []
    for band in _bands(distance):
        turned = (value << band.turn | value >> BITS - band.turn) & _ALL
        key = band.start | turned >> band.key_shift
        found.append(Slot(key, band, turned >> band.lead_shift & band.lead_mask, turned & band.rest_mask))
    return found


def search(of: list[Slot], distance: int, rows: Mapping[int, bytes]) -> list[Hit]:
    """Fingerprints within the distance of the one whose slots these are, nearest first, then by number.

    Rows that are not given are empty.
    """
    found: set[Hit] = set()
    for slot in of:
        row = rows.get(slot.key)
        if row:
            found.update(hit for hit in _led(slot, row) if hit.distance <= distance)
    return sorted(found)


def added(slot: Slot, number: int, row: bytes) -> bytes | None:
    """The row with one more member; None when it is full. Leads stand first, then rests, then numbers."""
    band = slot.band
    count = len(row) // band.size
    if count >= MEMBERS_LIMIT:
        return None
    rests, numbers = band.lead_bytes * count, (band.lead_bytes + band.rest_bytes) * count
    parts = (
        row[:rests],
        slot.lead.to_bytes(band.lead_bytes, "little"),
        row[rests:numbers],
        slot.rest.to_bytes(band.rest_bytes, "little"),
        row[numbers:],
        (number & _IDS).to_bytes(ID_BYTES, "little"),
    )
    return b"".join(parts)


@lru_cache(maxsize=8)
def _bands(distance: int) -> tuple[_Band, ...]:
    count = distance + 1
    edges = [BITS * band // count for band in range(count + 1)]
    found = []
    for number in range(count):
        width = edges[number + 1] - edges[number]
        # The one below it comes next; the lowest is followed by the highest.
        lead = edges[number] - edges[number - 1] if number else BITS - edges[-2]
        rest = BITS - width - lead
        found.append(
            _Band(
                start=distance << _DISTANCE_SHIFT | number << _BAND_SHIFT,
                turn=BITS - edges[number + 1],
                key_shift=BITS - width,
                lead_shift=rest,
                lead_mask=(1 << lead) - 1,
                rest_mask=(1 << rest) - 1,
                lead_bytes=(lead + 7) // 8,
                rest_bytes=(rest + 7) // 8,
            )
        )
    return tuple(found)


def _led(slot: Slot, row: bytes) -> Iterator[Hit]:
    """The members of a row whose lead differs in one bit at most.

    Each lead is a lane of one long integer. Bits are counted in every byte; then one multiplication adds the bytes of
    each lane up in its highest, where no count reaches 128.
    """
    band = slot.band
    width = band.lead_bytes
    count = len(row) // band.size
    masks = _masks(width, count)
    bits = int.from_bytes(row[: width * count], "little") ^ masks.lanes * slot.lead
    bits -= bits >> 1 & masks.ones
    bits = (bits & masks.twos) + (bits >> 2 & masks.twos)
    bits = bits + (bits >> 4) & masks.fours
    # The highest bit of a lane is set where more than one bit differs.
    near = ~(bits * masks.adds + masks.bounds) & masks.tops
    while near:
        yield _member(slot, row, count, ((near & -near).bit_length() - 1) // (8 * width))
        near &= near - 1


def _member(slot: Slot, row: bytes, count: int, place: int) -> Hit:
    _, band, lead, rest = slot
    start, behind = band.lead_bytes * place, band.lead_bytes * count + band.rest_bytes * place
    its_lead = int.from_bytes(row[start : start + band.lead_bytes], "little")
    its_rest = int.from_bytes(row[behind : behind + band.rest_bytes], "little")
    last = (band.lead_bytes + band.rest_bytes) * count + ID_BYTES * place
    number = int.from_bytes(row[last : last + ID_BYTES], "little")
    return Hit((its_lead ^ lead).bit_count() + (its_rest ^ rest).bit_count(), number)


class _Masks(NamedTuple):
    """Patterns over all lanes."""

    lanes: int
    """The lowest bit of each."""
    tops: int
    """The highest bit of each."""
    ones: int
    twos: int
    fours: int
    adds: int
    """Adds all bytes of a lane up in its highest."""
    bounds: int
    """Added to such a sum, sets the highest bit of the lane when more than one bit was counted."""


@lru_cache(maxsize=4 * MEMBERS_LIMIT)
def _masks(width: int, count: int) -> _Masks:
    lanes = int.from_bytes((b"\1" + bytes(width - 1)) * count, "little")
    byte = int.from_bytes(b"\1" * width * count, "little")
    adds = int.from_bytes(b"\1" * width, "little")
    tops = lanes << 8 * width - 1
    bounds = lanes * (0x7E << 8 * (width - 1))
    return _Masks(lanes, tops, byte * 0x55, byte * 0x33, byte * 0x0F, adds, bounds)
