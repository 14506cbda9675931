"""The work of `table` on many keys at once, with numpy. Same memory, same rules, same answers.

Only this module knows numpy. Views of the table's memory end before the table grows, since memory that somebody
looks at cannot be moved.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawlspace.seen.table import SLOTS, Hashed, Table

Words = NDArray[np.uint64]
Places = NDArray[np.intp]
Answers = NDArray[np.bool_]

SLICE: Final = 1 << 14
"""Keys looked at in one go: their buckets, a megabyte or two, stay in the processor's cache."""
_CHUNK: Final = 1 << 12
"""Buckets moved in one go while the table grows."""
_TWO_BYTES: Final = (1 << 16) - 1
_EIGHT_ONES: Final = np.uint64(0x0101010101010101)
_TOP_BYTE: Final = np.uint64(56)
_HALF: Final = np.uint64(32)


class _Keys(NamedTuple):
    """Hashes of some keys; `second` is None for keys of 8 bytes."""

    first: Words
    second: Words | None

    def only(self, which: Places | Answers | slice) -> _Keys:
        return _Keys(self.first[which], None if self.second is None else self.second[which])

    def sorted(self) -> Places:
        """The order in which they rise; equal ones stay in their own."""
        order = np.argsort(self.first, kind="stable")
        if self.second is not None:
            first, second = self.first[order], self.second[order]
            # Hardly ever: two keys of which one word is the same.
            if np.any((first[1:] == first[:-1]) & (second[1:] != second[:-1])):
                return np.lexsort((self.second, self.first))
        return order

    def differ_from_the_one_before(self) -> Answers:
        """For keys in order: False for each repeat."""
        differ = np.ones(len(self.first), np.bool_)
        np.not_equal(self.first[1:], self.first[:-1], out=differ[1:])
        if self.second is not None:
            differ[1:] |= self.second[1:] != self.second[:-1]
        return differ


class _View:
    """The table's memory as arrays with a row for each bucket."""

    def __init__(self, table: Table) -> None:
        self.buckets = table.buckets
        self.first = _rows(table.first)
        self.second = None if table.second is None else _rows(table.second)

    def homes(self, keys: _Keys) -> Places:
        return ((keys.first >> _HALF) * np.uint64(self.buckets) >> _HALF).astype(np.intp)

    def search(self, keys: _Keys) -> tuple[Answers, Places]:
        """Which keys are there, and for each the bucket where its search ended."""
        places = self.homes(keys)
        found, on = self._look(keys, places)
        at = places
        going = on
        while len(on):
            keys = keys.only(on)
            at = at[on] + 1
            at[at == self.buckets] = 0
            places[going] = at
            hit, on = self._look(keys, at)
            found[going[hit]] = True
            going = going[on]
        return found, places

    def _look(self, keys: _Keys, at: Places) -> tuple[Answers, Places]:
        """Which keys are in these buckets of theirs, and the places of those to be sought in the next one."""
        rows = self.first.take(at, axis=0)
        hit = _any(rows == keys.first[:, None])
        if self.second is not None and keys.second is not None and len(maybe := _where(hit)):
            same = rows.take(maybe, axis=0) == keys.first[maybe, None]
            same &= self.second.take(at[maybe], axis=0) == keys.second[maybe, None]
            hit[maybe] = _any(same)
        return hit, _where(~hit & (rows[:, -1] != 0))

    def place(self, keys: _Keys, at: Places, *, around: bool) -> _Keys:
        """Write keys that are not there, searching from bucket `at` on; those that would lie beyond the end go
        around to the first bucket, or else are given back."""
        beyond: list[_Keys] = []
        while len(keys.first):
            order = np.argsort(at, kind="stable")
            keys, at = keys.only(order), at[order]
            slots = _filled(self.first.take(at, axis=0)) + _ranks(at)
            fits = slots < SLOTS
            self._write(keys.only(fits), at[fits], slots[fits])
            keys, at = keys.only(~fits), at[~fits] + 1
            if around:
                at %= self.buckets
            else:
                inside = at < self.buckets
                beyond.append(keys.only(~inside))
                keys, at = keys.only(inside), at[inside]
        return _together([*beyond, keys])

    def lay(self, keys: _Keys, homes: Places, free: int) -> tuple[_Keys, Places]:
        """Write keys, in order of their homes, where all buckets before `free` are empty; give back the others.

        Each key lies behind the one before it, or at the start of its home where that is further on.
        """
        count = np.arange(len(homes))
        slots = count + np.maximum.accumulate(homes * SLOTS - count)
        fits = int(np.searchsorted(slots, free * SLOTS))
        self.first.reshape(-1)[slots[:fits]] = keys.first[:fits]
        if self.second is not None and keys.second is not None:
            self.second.reshape(-1)[slots[:fits]] = keys.second[:fits]
        return keys.only(slice(fits, None)), homes[fits:]

    def take_out(self, start: int, end: int) -> _Keys:
        """Empty the buckets from `start` to before `end`, and give what was in them."""
        used = self.first[start:end] != 0
        keys = _Keys(self.first[start:end][used], None if self.second is None else self.second[start:end][used])
        self.first[start:end] = 0
        return keys

    def _write(self, keys: _Keys, at: Places, slots: Places) -> None:
        self.first[at, slots] = keys.first
        if self.second is not None and keys.second is not None:
            self.second[at, slots] = keys.second


def add_many(table: Table, packed: bytes) -> list[bool]:
    """Add the keys that lie end to end in `packed`; which of them were new."""
    columns = np.frombuffer(packed, np.uint64).reshape(-1, 1 if table.second is None else 2)
    answers: list[bool] = []
    for start in range(0, len(columns), SLICE):
        answers += _add(table, _hashed(table, columns[start : start + SLICE])).tolist()
    return answers


def grow(table: Table) -> None:
    """`Table.grow`, a chunk of buckets at a time."""
    old = table.buckets
    table.lengthen()
    view = _View(table)
    free = table.buckets
    late: list[_Keys] = []
    for end in range(old, 0, -_CHUNK):
        start = max(0, end - _CHUNK)
        keys = view.take_out(start, end)
        homes = view.homes(keys)
        early = homes < start
        late.append(keys.only(early))
        keys, homes = _in_order(keys.only(~early), homes[~early])
        lowest = int(homes[0]) if len(homes) else free
        late.append(view.place(*view.lay(keys, homes, free), around=False))
        free = min(free, lowest)
    waited = _together(late)
    view.place(waited, view.homes(waited), around=True)


def _add(table: Table, keys: _Keys) -> Answers:
    view = _View(table)
    found, places = view.search(keys)
    for index in _where(keys.first == 0).tolist():
        found[index] = not table.add(Hashed(0, 0 if keys.second is None else int(keys.second[index])))
    unknown = _where(~found & (keys.first != 0))
    order = unknown[keys.only(unknown).sorted()]
    once = keys.only(order).differ_from_the_one_before()
    found[order[~once]] = True
    fresh = order[once]
    if table.has_room_for(len(fresh)):
        view.place(keys.only(fresh), places[fresh], around=True)
    else:
        del view
        while not table.has_room_for(len(fresh)):
            grow(table)
        view = _View(table)
        view.place(keys.only(fresh), view.homes(keys.only(fresh)), around=True)
    table.count += len(fresh)
    return ~found


def _hashed(table: Table, columns: Words) -> _Keys:
    multipliers = table.multipliers
    if table.second is None:
        return _Keys(columns[:, 0] * np.uint64(multipliers.first), None)
    last = columns[:, 1].copy()
    return _Keys((columns[:, 0] + last * np.uint64(multipliers.second)) * np.uint64(multipliers.first), last)


def _rows(column: object) -> Words:
    return np.frombuffer(column, np.uint64).reshape(-1, SLOTS)  # type: ignore[call-overload, no-any-return]


def _in_order(keys: _Keys, homes: Places) -> tuple[_Keys, Places]:
    """Keys and homes by rising homes. Those of a chunk lie close together: two bytes hold where, and sort fastest."""
    if not len(homes):
        return keys, homes
    near = homes - homes.min()
    order = np.argsort(near.astype(np.uint16) if near.max() <= _TWO_BYTES else near, kind="stable")
    return keys.only(order), homes[order]


def _where(answers: Answers) -> Places:
    """The places of the yeses. `numpy.flatnonzero` says the same, and for short arrays takes four times as long."""
    places: Places = answers.nonzero()[0]
    return places


def _any(same: Answers) -> Answers:
    """Which rows of eight answers have a yes: side by side they are a word that is 0 when all are no."""
    found: Answers = same.view(np.uint64)[:, 0] != 0
    return found


def _filled(rows: Words) -> Places:
    """How many slots of each row are used: of eight bytes that are 0 or 1, a product's top byte is the sum."""
    together: Words = (rows != 0).view(np.uint64)[:, 0]
    return (together * _EIGHT_ONES >> _TOP_BYTE).astype(np.intp)


def _ranks(at: Places) -> Places:
    """For places in order: how many before each are the same."""
    count = np.arange(len(at))
    begins = np.ones(len(at), np.bool_)
    np.not_equal(at[1:], at[:-1], out=begins[1:])
    return count - np.maximum.accumulate(np.where(begins, count, 0))


def _together(parts: list[_Keys]) -> _Keys:
    seconds = [part.second for part in parts if part.second is not None]
    return _Keys(np.concatenate([part.first for part in parts]), np.concatenate(seconds) if seconds else None)
