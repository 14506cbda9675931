"""What every seen-set does, wherever it keeps its keys."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from threading import Barrier

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlspace.errors import UsageError
from crawlspace.seen import SeenSet

Opener = Callable[[], AbstractContextManager[SeenSet]]

NUMBERS = st.one_of(st.integers(0, 40), st.sampled_from([2**63, 2**64 - 1, 2**32, 2**40]))
CALLS = st.lists(st.one_of(NUMBERS, st.lists(NUMBERS, max_size=120)), max_size=25)
"""A number is one key added alone, a list is a batch: short ones and long ones go different ways."""


def key(number: int, size: int) -> bytes:
    """A key of this length. Those of 16 bytes share their first word with many others, and 0 is all zeros."""
    last = number.to_bytes(8, sys.byteorder)
    return last if size == 8 else (number % 7).to_bytes(8, sys.byteorder) + last


def keys(numbers: list[int], size: int) -> list[bytes]:
    return [key(number, size) for number in numbers]


def random_keys(seed: int, count: int, size: int) -> list[bytes]:
    chance = random.Random(seed)
    return [chance.randbytes(size) for _ in range(count)]


def expected(batch: list[bytes], known: set[bytes]) -> list[bool]:
    """The answers of a Python set, which learns the batch."""
    answers = []
    for one in batch:
        answers.append(one not in known)
        known.add(one)
    return answers


@given(calls=CALLS)
@settings(max_examples=40)
def test_any_sequence_of_calls_is_answered_as_by_a_python_set(
    opener: Opener, size: int, calls: list[int | list[int]]
) -> None:
    known: set[bytes] = set()
    with opener() as seen:
        for call in calls:
            if isinstance(call, int):
                assert seen.add_if_new(key(call, size)) == expected([key(call, size)], known)[0]
            else:
                batch = keys(call, size)
                assert seen.add_many(batch) == expected(batch, known)
            assert len(seen) == len(known)
        assert all((key(number, size) in seen) == (key(number, size) in known) for number in range(42))


def test_twenty_thousand_random_keys_are_new_once_and_known_ever_after(opener: Opener, size: int) -> None:
    """Enough for the table in memory to grow many times."""
    batch = random_keys(1, 20_000, size)
    with opener() as seen:
        for start in range(0, len(batch), 1000):
            assert all(seen.add_many(batch[start : start + 1000]))
        assert len(seen) == 20_000
        assert not any(seen.add_many(batch))
        assert not any(seen.add_if_new(one) for one in batch[::50])
        assert not any(one in seen for one in random_keys(2, 1000, size))


def test_keys_that_come_alone_find_room_like_those_of_a_batch(opener: Opener, size: int) -> None:
    batch = random_keys(6, 1500, size)
    with opener() as seen:
        assert all(seen.add_if_new(one) for one in batch)
        assert not any(seen.add_many(batch))
        assert len(seen) == 1500


@pytest.mark.parametrize("step", [1, 2**32, 2**56], ids=["neighbours", "high halves", "top bytes"])
def test_keys_that_are_no_digests_are_kept_as_exactly(opener: Opener, size: int, step: int) -> None:
    batch = keys([number * step % 2**64 for number in range(3000)], size)
    known: set[bytes] = set()
    answers = expected(batch, known)
    with opener() as seen:
        assert seen.add_many(batch) == answers
        assert len(seen) == len(known)
        assert not any(seen.add_many(batch))


def test_of_equal_keys_in_one_batch_the_first_is_new(opener: Opener, size: int) -> None:
    batch = keys([5, 6, 5, 0, 0, 6, *range(10, 60), 5, 10], size)
    with opener() as seen:
        assert seen.add_many(batch) == [True, True, False, True, False, False, *[True] * 50, False, False]


def test_an_empty_batch_has_no_answers(opener: Opener) -> None:
    with opener() as seen:
        assert seen.add_many([]) == []
        assert seen.add_many(b"") == []
        assert len(seen) == 0


def test_a_key_can_be_looked_for_without_being_added(opener: Opener, size: int) -> None:
    with opener() as seen:
        assert key(0, size) not in seen
        assert key(1, size) not in seen
        assert seen.add_if_new(key(1, size))
        assert key(1, size) in seen
        assert key(0, size) not in seen


def test_a_set_says_how_long_its_keys_are(opener: Opener, size: int) -> None:
    with opener() as seen:
        assert seen.key_bytes == size


@pytest.mark.parametrize("wrong", [b"", b"short", bytes(17), "a string", 7, None, bytearray(8)])
def test_what_is_no_key_is_refused_and_nothing_is_added(opener: Opener, size: int, wrong: object) -> None:
    with opener() as seen:
        with pytest.raises(UsageError, match="key"):
            seen.add_if_new(wrong)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="key"):
            wrong in seen  # type: ignore[operator] # noqa: B015
        if not isinstance(wrong, bytearray):
            with pytest.raises(UsageError, match="key"):
                seen.add_many([key(1, size), wrong])  # type: ignore[list-item]
        assert len(seen) == 0


def test_lengths_that_only_add_up_are_refused(opener: Opener, size: int) -> None:
    with opener() as seen, pytest.raises(UsageError, match=f"keys of {size} bytes, not {size - 1}"):
        seen.add_many([bytes(size - 1), bytes(size + 1)])


BUFFERS: dict[str, Callable[[bytes, int], object]] = {
    "bytes": lambda packed, _: packed,
    "bytearray": lambda packed, _: bytearray(packed),
    "memoryview": lambda packed, _: memoryview(packed),
    "array of words": lambda packed, _: np.frombuffer(packed, np.uint64),
    "array of keys": lambda packed, size: np.frombuffer(packed, f"V{size}"),
    "array of rows": lambda packed, size: np.frombuffer(packed, np.uint8).reshape(-1, size),
    "every second row": lambda packed, size: np.frombuffer(packed, np.uint8).reshape(-1, size).repeat(2, 0)[::2],
    "tuple": lambda packed, size: tuple(packed[at : at + size] for at in range(0, len(packed), size)),
    "view of a dict": lambda packed, size: dict.fromkeys(
        packed[at : at + size] for at in range(0, len(packed), size)
    ),
}


@pytest.mark.parametrize("kind", BUFFERS)
def test_keys_end_to_end_in_a_buffer_are_the_keys_they_are_in_a_list(opener: Opener, size: int, kind: str) -> None:
    batch = random_keys(3, 100, size)
    with opener() as seen:
        seen.add_many(batch[:50])
        assert seen.add_many(BUFFERS[kind](b"".join(batch), size)) == [False] * 50 + [True] * 50  # type: ignore[arg-type]
        assert not any(seen.add_many(batch))


def test_a_buffer_that_ends_in_half_a_key_is_refused(opener: Opener, size: int) -> None:
    with opener() as seen, pytest.raises(UsageError, match="no whole number of keys"):
        seen.add_many(bytes(size + size // 2))


def test_an_array_of_objects_is_refused(opener: Opener, size: int) -> None:
    """Its buffer holds addresses in memory, which would pass for keys."""
    with opener() as seen, pytest.raises(UsageError, match="Python objects"):
        seen.add_many(np.array(keys([1, 2], size), dtype=object))


@pytest.mark.parametrize("call", ["alone", "in a batch"])
def test_of_a_hundred_tasks_that_add_one_key_exactly_one_finds_it_new(opener: Opener, size: int, call: str) -> None:
    one = key(3, size)
    fill = random_keys(4, 40, size)
    with opener() as seen, ThreadPoolExecutor(100) as threads:
        seen.add_many(fill)
        start = Barrier(100)

        def task() -> bool:
            start.wait()
            return seen.add_if_new(one) if call == "alone" else seen.add_many([*fill, one])[-1]

        assert sum(future.result() for future in [threads.submit(task) for _ in range(100)]) == 1


def test_threads_that_add_the_same_keys_share_them_without_a_loss(opener: Opener, size: int) -> None:
    batch = random_keys(5, 4000, size)

    def task(number: int) -> int:
        mine = random.Random(number).sample(batch, len(batch))
        return sum(sum(seen.add_many(mine[at : at + 100])) for at in range(0, len(mine), 100))

    with opener() as seen, ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(task, range(4))) == len(batch) == len(seen)
