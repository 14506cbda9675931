"""The table of captures: one row for each stored response, in columns. Pure; what it is written with is in `table`.

The files lie in the crawl directory as `captures/date=YYYY-MM-DD/bucket=NN/*.parquet`: the day of the request in UTC,
and the host's bucket. Both names are columns too for readers that know such partitions (`hive_partitioning` of
DuckDB, `partitioning="hive"` of pyarrow). All that a row says stands in the WARC files, of which `index` makes the
table again. Rows of captures that were made twice, since a crash came before the first counted, are all there.
"""

from __future__ import annotations

from binascii import crc32
from enum import StrEnum, unique
from time import gmtime, strftime
from typing import NamedTuple

DIRECTORY = "captures"
"""Of the table, in the crawl directory."""
BUCKETS = 16


@unique
class Kind(StrEnum):
    """What a column holds."""

    TEXT = "text"
    WORD = "word"
    """Text of which there are few kinds."""
    WHOLE = "whole"
    """An integer of 64 bits."""
    SMALL = "small"
    """An integer of 32 bits."""
    TIME = "time"
    """A moment in UTC, to the millisecond."""
    FLAG = "flag"


class Column(NamedTuple):
    """One column."""

    name: str
    kind: Kind
    meaning: str
    required: bool = False
    """Never null."""


COLUMNS = (
    Column("url", Kind.TEXT, "What was requested: the fetch URL.", required=True),
    Column("canonical", Kind.TEXT, "Its canonical form under the crawl's URL rules at the time."),
    Column("host", Kind.TEXT, "The host under the host rules, with its port if unusual.", required=True),
    Column("id", Kind.WHOLE, "The URL's number in the crawl; null for robots.txt and imported captures."),
    Column("at", Kind.TIME, "When the request started.", required=True),
    Column("kind", Kind.WORD, "response, revisit (same bytes as before) or not_modified (304).", required=True),
    Column(
        "outcome",
        Kind.WORD,
        "done, stored, redirected, moved, retry, rerouted or dead; null where no URL was settled.",
    ),
    Column("error", Kind.WORD, "Class of the failure; null when there was none."),
    Column("method", Kind.WORD, "HTTP method.", required=True),
    Column("status", Kind.SMALL, "HTTP status; null when the head has none."),
    Column("mime", Kind.WORD, "Type as the server declared it, in lower case."),
    Column("detected", Kind.WORD, "Type as it was read."),
    Column("charset", Kind.WORD, "Encoding, by the names of the Encoding Standard."),
    Column("language", Kind.WORD, "Language that the page declares."),
    Column("payload_digest", Kind.TEXT, "SHA-1 of the payload as sent, base 32: the WARC-Payload-Digest.", True),
    Column("body_digest", Kind.TEXT, "SHA-256 of the decoded body, hexadecimal."),
    Column("text_digest", Kind.TEXT, "Digest of the text, hexadecimal."),
    Column("wire_size", Kind.WHOLE, "Bytes of the response as sent, head and payload.", required=True),
    Column("body_size", Kind.WHOLE, "Bytes of the decoded body."),
    Column("truncated", Kind.WORD, "Why the body is not whole; null when it is."),
    Column("elapsed_ms", Kind.WHOLE, "Duration of the request."),
    Column("depth", Kind.SMALL, "Links followed from a seed."),
    Column("hops", Kind.SMALL, "Redirects in a row that led here."),
    Column("parent", Kind.WHOLE, "Number of the URL that gave it: joins with `id`."),
    Column("relation", Kind.WORD, "How it was found: seed, hyperlink, redirect and so on."),
    Column("generation", Kind.SMALL, "Round of visits."),
    Column("target", Kind.TEXT, "Where the answer redirected to."),
    Column("declared", Kind.TEXT, "Address that the page declares as its own (rel=canonical), as it stands there."),
    Column("noindex", Kind.FLAG, "The page asks not to be indexed."),
    Column("nofollow", Kind.FLAG, "The page asks that none of its links be followed."),
    Column("links", Kind.SMALL, "How many links were read."),
    Column("refers_url", Kind.TEXT, "For a revisit: URL of the capture that has the bytes."),
    Column("refers_at", Kind.TIME, "For a revisit: its time."),
    Column("address", Kind.TEXT, "IP address that answered."),
    Column("file", Kind.WORD, "The WARC file.", required=True),
    Column("offset", Kind.WHOLE, "Where its record begins in the file.", required=True),
    Column("length", Kind.WHOLE, "Bytes of the record in the file.", required=True),
)


class Partition(NamedTuple):
    """Where a row belongs."""

    date: str
    bucket: int

    @property
    def path(self) -> str:
        """Below the table's directory."""
        return f"date={self.date}/bucket={self.bucket:02}"


def partition_of(at: int, host: str) -> Partition:
    """The partition of a capture of `host` that was made at `at`."""
    return Partition(strftime("%Y-%m-%d", gmtime(at // 1000)), crc32(host.encode("utf-8", "replace")) % BUCKETS)
