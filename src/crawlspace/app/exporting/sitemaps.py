"""URLs into a sitemap, or into several and an index, each of which gets its name when all are whole."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from crawlspace.app.output import STANDARD, Partials, Target, partials
from crawlspace.errors import UsageError
from crawlspace.exports.sitemap import Entry, Part, index


def write_sitemap(target: Target, entries: Iterable[Entry], base: str | None) -> int:
    """Write the entries to `target`; how many.

    When one file cannot hold them, `target` is an index of the parts `NAME-1.xml` and so on beside it, which `base`
    says the address of; raises `UsageError` when that is not given.
    """
    with partials(target.path, force=target.force) as growing:
        parts = _Parts(growing, target.path, base)
        with parts.open:
            n = 0
            for entry in entries:
                parts.add(entry)
                n += 1
            parts.end()
        parts.name()
    return n


class _Parts:
    """The parts of a sitemap."""

    def __init__(self, growing: Partials, target: Path, base: str | None) -> None:
        self._growing = growing
        self._target = target
        self._base = base
        self._files: list[Path] = []
        self.open = ExitStack()
        self._part = self._begin()

    def add(self, entry: Entry) -> None:
        if not self._part.add(entry):
            self._require_base()
            self._part.end()
            self.open.close()
            self._part = self._begin()
            self._part.add(entry)

    def end(self) -> None:
        """Nothing more comes."""
        self._part.end()

    def name(self) -> None:
        """One file has the name that was asked for; of several that one is the index, and last."""
        if len(self._files) == 1:
            return
        names = [self._target.with_name(f"{self._target.stem}-{n}.xml") for n in range(1, len(self._files) + 1)]
        for file, name in zip(self._files, names, strict=True):
            self._growing.rename(file, name)
        base = (self._base or "").rstrip("/")
        with self._growing(self._target).open("wb") as out:
            out.writelines(index(f"{base}/{name.name}" for name in names))

    def _begin(self) -> Part:
        file = self._growing(self._target)
        self._files.append(file)
        return Part(self.open.enter_context(file.open("wb")))

    def _require_base(self) -> None:
        if self._target == STANDARD:
            raise UsageError("one sitemap cannot hold these URLs", hint="write to a file, with --base")
        if self._base is None:
            raise UsageError(
                "one sitemap cannot hold these URLs, and an index must say where its parts will lie",
                hint="give the address of their directory: --base https://example.com/",
            )
