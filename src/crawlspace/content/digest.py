"""The name of a document's bytes.

The digest is taken of the decoded body, so that the same document is the same whatever coding or framing it came
in. It is stored with every outcome and never changes its meaning. The archive's own digests of what was sent are
another thing and are made there.
"""

from __future__ import annotations

from hashlib import sha256

DIGEST_BYTES = 32


def body_digest(body: bytes) -> bytes:
    """SHA-256 (FIPS 180-4) of a decoded body: 32 bytes. The empty body has one too."""
    return sha256(body).digest()
