"""The name of a document's bytes."""

from __future__ import annotations

import pytest

from crawlspace.content.digest import DIGEST_BYTES, body_digest


@pytest.mark.parametrize(
    ("body", "digest"),
    [
        (b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ],
)
def test_the_digest_is_sha_256(body: bytes, digest: str) -> None:
    """Known answers of FIPS 180-4."""
    assert body_digest(body).hex() == digest
    assert len(body_digest(body)) == DIGEST_BYTES
