"""What a source is, by what it is called and what it begins with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import StrEnum, unique
from pathlib import Path
from typing import NamedTuple

from crawlspace.errors import UsageError


@unique
class Kind(StrEnum):
    """What a file or folder holds."""

    WARC = "warc"
    """Captures: WARC or ARC, compressed or not."""
    WACZ = "wacz"
    """A package of archive files."""
    INDEX = "cdxj"
    """Where captures lie: CDXJ, or CDX with its line of letters."""
    JSON = "json"
    """A feed: an array of objects, or an object a line."""
    CSV = "csv"
    """A feed: a table with a line of names."""
    LIST = "list"
    """URLs, one a line, each with the date of its visit behind it if there is one."""
    SCRAPY = "scrapy"
    """The directory of a Scrapy job (`JOBDIR`)."""


class Source(NamedTuple):
    """Something to import."""

    path: Path
    kind: Kind


_SUFFIXES = {
    **dict.fromkeys((".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz"), Kind.WARC),
    ".wacz": Kind.WACZ,
    **dict.fromkeys((".cdxj", ".cdx", ".cdxj.gz", ".cdx.gz"), Kind.INDEX),
    **dict.fromkeys((".jsonl", ".jl", ".json", ".jsonl.gz", ".jl.gz", ".json.gz", ".jsonl.zst"), Kind.JSON),
    **dict.fromkeys((".csv", ".csv.gz"), Kind.CSV),
    **dict.fromkeys((".txt", ".tsv", ".lst", ".urls", ".txt.gz"), Kind.LIST),
}
_SCRAPY = ("requests.seen", "requests.queue")
_OF_COLLECTIONS = frozenset({Kind.WARC, Kind.WACZ, Kind.INDEX})
_MAGIC = 16


def sources(path: Path, kind: Kind | None = None) -> Iterator[Source]:
    """What is at `path`: a file, the collection in a folder and those below it, or a job's directory.

    In a folder archives come before indexes, both in order of their names; other files are left alone, and so are
    links. `kind` says what a file is that does not show it. Raises `UsageError` when nothing can be imported.
    """
    if not path.is_dir():
        yield Source(path, kind or _kind_of(path))
        return
    if kind is Kind.SCRAPY or any((path / name).exists() for name in _SCRAPY):
        yield Source(path, Kind.SCRAPY)
        return
    found = [source for file in _files(path) if (source := _of_collection(file)) is not None]
    if not found:
        raise UsageError(
            f"there is no archive file and no index in {path}",
            hint="files of other kinds are imported one by one, by their names",
        )
    yield from sorted(found, key=lambda source: (source.kind is Kind.INDEX, source.path))


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(place, name) for name in sorted(names))


def _of_collection(path: Path) -> Source | None:
    kind = _by_suffix(path)
    if kind not in _OF_COLLECTIONS or path.is_symlink() or not path.is_file():
        return None
    return Source(path, kind)


def _by_suffix(path: Path) -> Kind | None:
    name = path.name.lower()
    return next(
        (_SUFFIXES[suffix] for suffix in sorted(_SUFFIXES, key=len, reverse=True) if name.endswith(suffix)), None
    )


def _kind_of(path: Path) -> Kind:
    try:
        if not path.is_file():
            raise UsageError(
                f"there is no file or folder {path}" if not path.exists() else f"{path} is no plain file"
            )
        with path.open("rb") as file:
            magic = file.read(_MAGIC)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error
    if magic.startswith((b"WARC/", b"filedesc:")):
        return Kind.WARC
    kind = _by_suffix(path)
    if kind is not None:
        return kind
    if magic[:2] == b"\x1f\x8b":
        return Kind.WARC
    raise UsageError(f"{path} does not show what it holds", hint=f"say --as {'|'.join(Kind)}")
