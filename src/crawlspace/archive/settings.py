"""Settings of the raw layer."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from crawlspace.archive.members import FASTEST, SMALLEST

_MIB = 1 << 20
_HeaderName = Annotated[str, msgspec.Meta(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", max_length=100)]


class ArchiveSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of the raw layer."""

    max_file: Annotated[
        int, msgspec.Meta(description="Bytes after which a new WARC file begins.", ge=_MIB, le=1 << 40)
    ] = 1 << 30
    max_age: Annotated[
        int, msgspec.Meta(description="Seconds after which a new WARC file begins.", ge=60, le=31_536_000)
    ] = 86_400
    min_free: Annotated[
        int, msgspec.Meta(description="Bytes of free disk space below which a crawl pauses.", ge=0, le=1 << 50)
    ] = 64 * _MIB
    max_record: Annotated[
        int,
        msgspec.Meta(description="Largest response or request kept or read back, bytes.", ge=_MIB, le=1 << 32),
    ] = 256 * _MIB
    compression: Annotated[
        Literal["gzip", "zstd"],
        msgspec.Meta(
            description="How records are packed: gzip (.warc.gz, which all tools read) or zstd (.warc.zst)."
        ),
    ] = "gzip"
    dictionary: Annotated[
        bool,
        msgspec.Meta(
            description="With zstd, pack by a dictionary made from the crawl's first pages; each file begins with it."
        ),
    ] = True
    level: Annotated[
        int,
        msgspec.Meta(
            description="Compression level: 0 is fastest, 3 smallest; at 1, records of 4 KiB and less are as at 0.",
            ge=FASTEST,
            le=SMALLEST,
        ),
    ] = 1
    revisits: Annotated[
        bool,
        msgspec.Meta(
            description="Keep a payload that a stored page of the crawl already has as a reference (WARC revisit)."
        ),
    ] = True
    metadata: Annotated[
        bool,
        msgspec.Meta(description="Keep links, outcome, type and digests beside each response, as a WARC record."),
    ] = True
    table: Annotated[
        bool,
        msgspec.Meta(description="Write the table of captures (Parquet) while crawling; needs the extra parquet."),
    ] = False
    store: Annotated[
        str,
        msgspec.Meta(
            description="Where WARC files are kept: empty for the crawl directory, or s3://bucket/prefix (extra s3).",
            pattern=r"^(?:s3://[^/@?#\s]+(?:/[^@?#\s]*)?)?$",
        ),
    ] = ""
    redact_headers: Annotated[
        tuple[_HeaderName, ...],
        msgspec.Meta(
            description="Request headers whose values are not kept, beside Authorization, Cookie and Proxy-*.",
            max_length=100,
        ),
    ] = ()
    redact_set_cookie: Annotated[
        bool, msgspec.Meta(description="Leave the values of Set-Cookie out of response heads.")
    ] = False
