"""The keys of a seen-set: 8 or 16 bytes each, one at a time or many laid end to end.

A key is the digest of something; its bytes are never read as more than bytes. The first and the last eight of
them are its words, in the machine's own byte order, since they never leave the process as words.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from crawlspace.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORD_BYTES: Final = 8
KEY_SIZES: Final = (WORD_BYTES, 2 * WORD_BYTES)

Keys: TypeAlias = "Sequence[bytes] | bytes | bytearray | memoryview | NDArray[Any]"
"""Many keys: a sequence of them, or their bytes end to end in one buffer, which a numpy array of any shape is too."""


def checked_size(key_bytes: int) -> int:
    """`key_bytes`, when keys can have that length; raises `UsageError`."""
    if key_bytes not in KEY_SIZES:
        raise UsageError(f"keys have 8 or 16 bytes, not {key_bytes}")
    return key_bytes


def checked(key: bytes, key_bytes: int) -> bytes:
    """`key`, when it has the right length; raises `UsageError`."""
    if not isinstance(key, bytes):
        raise UsageError(f"a key is bytes, not {type(key).__name__}")
    if len(key) != key_bytes:
        raise UsageError(f"this set has keys of {key_bytes} bytes, not {len(key)}")
    return key


def end_to_end(keys: Keys, key_bytes: int) -> bytes:
    """The bytes of all keys; raises `UsageError` when one has another length than `key_bytes`."""
    if isinstance(keys, (list, tuple)):
        return _joined(keys, key_bytes)
    try:
        view = memoryview(keys)  # type: ignore[arg-type]
    except TypeError:
        return _joined(list(cast(Sequence[bytes], keys)), key_bytes)
    if "O" in view.format:
        raise UsageError("an array of Python objects has no keys in it, only their addresses")
    packed = view.tobytes()
    if len(packed) % key_bytes:
        raise UsageError(f"{len(packed)} bytes are no whole number of keys of {key_bytes} bytes")
    return packed


def words(key: bytes) -> tuple[int, int]:
    """The first word of a key and its last; one and the same for a key of 8 bytes."""
    return (
        int.from_bytes(key[:WORD_BYTES], sys.byteorder),
        int.from_bytes(key[-WORD_BYTES:], sys.byteorder),
    )


def _joined(keys: Sequence[bytes], key_bytes: int) -> bytes:
    try:
        sizes = set(map(len, keys))
        packed = b"".join(keys)
    except TypeError as error:
        raise UsageError(f"a key is bytes: {error}") from error
    if sizes - {key_bytes}:
        raise UsageError(f"this set has keys of {key_bytes} bytes, not {min(sizes - {key_bytes})}")
    return packed
