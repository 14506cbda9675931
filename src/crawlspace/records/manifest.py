"""The manifest: which files of columns are live, and which journals are in them. Replaced in one step, or not at all.

A file that no manifest names does not count; it is what a crash left behind, or was replaced. What was replaced is
removed only at the step after the next, so that who began to read it can end.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from crawlspace.errors import CrawlDirError, StoreDamaged
from crawlspace.records.journal import sync_directory, unusable

FORMAT: Final = 1
NAME: Final = "manifest.json"


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """A file of columns."""

    file: str
    rows: int
    rules: str
    """Identifier of the URL rules under which its canonical URLs were made."""
    level: int = 0
    """How often it was merged."""


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """What is live."""

    format: int = FORMAT
    last: int = 0
    """The highest number of a journal that was folded."""
    serial: int = 0
    """The highest number of a part."""
    parts: tuple[Part, ...] = ()
    folded: tuple[int, ...] = ()
    """Journals that are in the parts, and may not be removed yet."""
    dropped: tuple[str, ...] = ()
    """Parts that were replaced in the last step."""


def read_manifest(directory: Path) -> Manifest:
    """The manifest; an empty one where there is none yet. Raises `StoreDamaged` or `CrawlDirError`."""
    try:
        manifest = msgspec.json.decode((directory / NAME).read_bytes(), type=Manifest)
    except FileNotFoundError:
        return Manifest()
    except OSError as error:
        raise unusable(directory, error) from error
    except msgspec.DecodeError as error:
        raise StoreDamaged(f"{directory / NAME} cannot be read: {error}") from None
    if manifest.format > FORMAT:
        raise CrawlDirError(f"the records in {directory} were written by a newer version (format {manifest.format})")
    if any("/" in part.file or part.file.startswith(".") for part in manifest.parts):
        raise StoreDamaged(f"{directory / NAME} names files outside its directory")
    return manifest


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Replace the manifest; durable on return."""
    new = directory / f"{NAME}.new"
    try:
        with new.open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(manifest)))
            file.flush()
            os.fsync(file.fileno())
        new.replace(directory / NAME)
        sync_directory(directory)
    except OSError as error:
        raise unusable(directory, error) from error
