"""The archive files in a package (WACZ), which lie in it as they are."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from crawlspace.app.importing.imported import Imported

_SUFFIXES = (".warc", ".warc.gz", ".warc.zst")


def unpacked(path: Path, folder: Path, done: Imported) -> Iterator[Path]:
    """Each archive file of a package in turn, copied into `folder` until the next is asked for. Raises `OSError`.

    Names in the package decide nothing but the order. Files that the package compresses are refused: the format wants
    them as they are, and what they unfold to has no bound.
    """
    try:
        with ZipFile(path) as package:
            for number, info in enumerate(_archives(package, path, done)):
                suffix = next(each for each in reversed(_SUFFIXES) if info.filename.endswith(each))
                file = folder / f"{path.stem[:60]}-{number}{suffix}"
                _copy(package, info, file)
                yield file
                file.unlink()
    except (BadZipFile, NotImplementedError, EOFError) as error:
        done.lost(f"{path.name}: it is no package, or a broken one: {error}")


def _copy(package: ZipFile, info: ZipInfo, file: Path) -> None:
    with package.open(info) as packed, file.open("wb") as out:
        shutil.copyfileobj(packed, out)


def _archives(package: ZipFile, path: Path, done: Imported) -> Iterator[ZipInfo]:
    for info in package.infolist():
        if not info.filename.startswith("archive/") or not info.filename.endswith(_SUFFIXES):
            continue
        if info.compress_type == ZIP_STORED:
            yield info
        else:
            done.lost(f"{path.name}: {info.filename[:100]!r} is compressed by the package")
