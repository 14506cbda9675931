"""Links in PDF files; needs the extra `pdf`. To be called in a process of its own: the format is rich in traps.

Links are what a reader can click on: annotations with an address (PDF 1.7, section 12.6.4.7). Addresses that only
stand in the text are left out.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from typing import Any

from crawlspace.exchange import Headers
from crawlspace.pages.mime import content_type

PAGES = 5_000
"""Pages of a file that are looked at."""
ADDRESS = 4_096
"""Characters of an address; a longer one is none that could be fetched."""

_ESSENCE = "application/pdf"
_MARK = b"%PDF-"


def is_pdf(headers: Headers, body: bytes) -> bool:
    """Whether it is a PDF file: it begins like one, and nobody says that it is something else."""
    return body[:1024].lstrip()[: len(_MARK)] == _MARK and content_type(headers).essence in (
        _ESSENCE,
        "application/octet-stream",
        "",
    )


def pdf_links(body: bytes, most: int) -> list[str]:
    """Addresses in order, each once, `most` at most; a file that cannot be read gives what could be."""
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    found: dict[str, None] = {}
    try:
        for address in _addresses(PdfReader(io.BytesIO(body), strict=False)):
            if 0 < len(address) <= ADDRESS:
                found.setdefault(address)
            if len(found) >= most:
                break
    except MemoryError:
        raise
    except Exception:  # whatever a file does to its reader: what was found before stands
        return list(found)
    return list(found)


def _addresses(reader: Any) -> Iterator[str]:
    for number, page in enumerate(reader.pages):
        if number >= PAGES:
            return
        for annotation in page.get("/Annots") or ():
            action = annotation.get_object().get("/A")
            address = None if action is None else action.get_object().get("/URI")
            if address is not None:
                yield str(address)
