"""Links of documents that are no web pages, read in a process of their own."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence

import msgspec

from crawlspace.engine.apart import MEMORY, OUT_OF_MEMORY, SECONDS, Apart, limit
from crawlspace.errors import ConfigError
from crawlspace.exchange import FetchResult
from crawlspace.pages.pdf import is_pdf, pdf_links

OUTPUT = 4 << 20
"""Bytes that all links of a document may take."""

_COMMAND = (sys.executable, "-m", "crawlspace.engine.documents")


class Unread(Exception):
    """A document brought its reader down; the message says how."""


class Documents:
    """Reads documents. Raises `ConfigError` where the library for it is not there."""

    def __init__(self, max_links: int, seconds: float = SECONDS, command: Sequence[str] = _COMMAND) -> None:
        if importlib.util.find_spec("pypdf") is None:
            raise ConfigError("discovery.pdf needs the extra `pdf`", hint="pip install 'crawlspace[pdf]'")
        self._max_links = max_links
        self._apart = Apart(command, seconds, OUTPUT)

    async def links(self, result: FetchResult) -> list[str]:
        """The links of an answer as they stand there; none where it is no document. Raises `Unread`."""
        if not is_pdf(result.headers, result.body):
            return []
        problem, output = await self._apart.run(result.body)
        if problem is not None:
            raise Unread(f"the links of the document were read apart: {problem}")
        try:
            return msgspec.msgpack.decode(output, type=list[str])[: self._max_links]
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unread("the links of the document were read apart: what it gives is no list of links") from error


def main() -> int:
    """Write the links of what stands on the standard input to the standard output."""
    import pypdf  # noqa: F401 -- before there is too little memory for it

    body = sys.stdin.buffer.read()
    limit(SECONDS, MEMORY)
    try:
        links = pdf_links(body, 1_000_000)
    except MemoryError:
        return OUT_OF_MEMORY
    size = 0
    kept = []
    for link in links:
        size += len(link.encode("utf-8", "replace")) + 5
        if size > OUTPUT - 16:
            break
        kept.append(link.encode("utf-8", "replace").decode())
    sys.stdout.buffer.write(msgspec.msgpack.encode(kept))
    sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
