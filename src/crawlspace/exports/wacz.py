"""A web archive with its index and its list of pages in one file that opens in a browser (WACZ 1.1.1).

The file is a ZIP whose WARC and compressed index lie uncompressed, so that a reader fetches single records out of it.
It is written from front to back: the records first, then the index sorted by its keys, in blocks with a table of
where each begins, the pages, and last the list of all files with their digests.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from struct import pack
from time import gmtime
from typing import IO, BinaryIO, NamedTuple
from zipfile import ZIP64_LIMIT, ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

VERSION = "1.1.1"
WARC_NAME = "data.warc.gz"
"""The one WARC inside: what the index names."""
LINES_AT_ONCE = 1024
"""Of the index, in one compressed block; readers fetch and unpack whole blocks."""

_MODE = 0o644 << 16
_FILLER = pack("<HH16x", 0x4343, 16)
"""As long as the extra field for sizes of 64 bits, which stands before each file: no size is known when one begins.

Its number is no one's; readers pass over what they do not know.
"""


class About(NamedTuple):
    """What a package says of itself."""

    title: str
    software: str
    created: str
    """ISO 8601 in UTC."""


class Entry(NamedTuple):
    """A page in the list of pages, at which a person may begin to read."""

    id: str
    url: str
    at: str
    """When it was captured: ISO 8601 in UTC."""
    title: str = ""


class Package:
    """A package while it is written: `archive`, `index` and `pages` once each and in this order, then `close`."""

    def __init__(self, out: BinaryIO, about: About, at: int) -> None:
        """`out` must be able to seek; `at` is the time of all files inside, in milliseconds since 1970."""
        self._zip = ZipFile(out, "w", ZIP_STORED, allowZip64=True)
        self._about = about
        self._time = gmtime(at // 1000)[:6]
        self._resources: list[dict[str, str | int]] = []

    @contextmanager
    def archive(self) -> Iterator[Counted]:
        """Write the records."""
        with self._file(f"archive/{WARC_NAME}") as file:
            yield file

    def index(self, lines: Iterable[bytes]) -> None:
        """Write the sorted lines of the index."""
        table: list[bytes] = [_line("!meta", "0", {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"})]
        with self._file("indexes/index.cdx.gz") as file:
            following = iter(lines)
            while block := list(islice(following, LINES_AT_ONCE)):
                table.append(_write_block(file, block))
        with self._file("indexes/index.idx", ZIP_DEFLATED) as file:
            file.write(b"".join(table))

    def pages(self, entries: Iterable[Entry]) -> None:
        """Write the list of pages."""
        with self._file("pages/pages.jsonl", ZIP_DEFLATED) as file:
            file.write(_json({"format": "json-pages-1.0", "id": "pages", "title": "All pages"}) + b"\n")
            for entry in entries:
                facts = {"id": entry.id, "url": entry.url, "ts": entry.at, "title": entry.title}
                file.write(_json({name: value for name, value in facts.items() if value}) + b"\n")

    def close(self) -> None:
        """Write what the package holds; then nothing more comes."""
        listed = {
            "profile": "data-package",
            "wacz_version": VERSION,
            "title": self._about.title,
            "software": self._about.software,
            "created": self._about.created,
            "resources": self._resources,
        }
        package = json.dumps(listed, indent=2).encode()
        digest = {"path": "datapackage.json", "hash": f"sha256:{hashlib.sha256(package).hexdigest()}"}
        self._zip.writestr(self._info("datapackage.json", ZIP_DEFLATED), package)
        self._zip.writestr(self._info("datapackage-digest.json", ZIP_DEFLATED), json.dumps(digest, indent=2))
        self._zip.close()

    @contextmanager
    def _file(self, path: str, how: int = ZIP_STORED) -> Iterator[Counted]:
        info = self._info(path, how)
        with self._zip.open(info, "w", force_zip64=True) as raw:
            file = Counted(raw)
            yield file
        if max(info.file_size, info.compress_size) <= ZIP64_LIMIT:
            # ReplayWeb.page takes the length of these fields in the list at the end for that before the file's bytes.
            info.extra = _FILLER
        name = path.rpartition("/")[2]
        self._resources.append({"name": name, "path": path, "hash": file.hash, "bytes": file.end})

    def _info(self, path: str, how: int) -> ZipInfo:
        info = ZipInfo(path, self._time)
        info.compress_type = how
        info.external_attr = _MODE
        return info


class Counted:
    """A file inside the package, with its length and digest so far."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self._digest = hashlib.sha256()
        self.end = 0
        """Bytes written."""

    def write(self, data: bytes) -> None:
        """Write at the end."""
        self._raw.write(data)
        self._digest.update(data)
        self.end += len(data)

    @property
    def hash(self) -> str:
        """SHA-256 with its label."""
        return f"sha256:{self._digest.hexdigest()}"


def _write_block(file: Counted, block: list[bytes]) -> bytes:
    """Write a block of the index; its line in the table: the key and time of its first line, and where it lies."""
    offset = file.end
    packed = gzip.compress(b"".join(block), mtime=0)
    file.write(packed)
    key, at = block[0].split(b" ", 2)[:2]
    digest = f"sha256:{hashlib.sha256(packed).hexdigest()}"
    facts: dict[str, object] = {"offset": offset, "length": len(packed), "digest": digest, "filename": "index.cdx.gz"}
    return _line(key.decode(), at.decode(), facts)


def _line(key: str, at: str, facts: dict[str, object]) -> bytes:
    return f"{key} {at} ".encode() + _json(facts) + b"\n"


def _json(facts: object) -> bytes:
    return json.dumps(facts).encode()
