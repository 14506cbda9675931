"""The sites that are crawled: documents from Debian packages, and the pages that their own links lead to.

Which pages there are is found by walking the links of the files, with the standard library's reading of addresses:
what is expected must not come from the code that is measured.
"""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser

_BASE = "http://site.invalid"
_INDEX = "index.html"
_PAGES = (".html", ".htm")


@dataclass(frozen=True, slots=True)
class Site:
    """A folder of HTML files that is served from its root."""

    name: str
    folder: Path
    package: str = ""
    """The Debian package that brings it; empty when it is made here."""

    def missing(self) -> str:
        """What to do about a site that is not on this machine; empty when it is."""
        if (self.folder / _INDEX).is_file():
            return ""
        return f"{self.folder} is not there; on Debian: apt-get install {self.package}"


REAL_SITES = {
    "pg": Site("pg", Path("/usr/share/doc/postgresql-doc-15/html"), "postgresql-doc-15"),
    "py": Site("py", Path("/usr/share/doc/python3.11/html"), "python3.11-doc"),
}

LARGE_SITES = (
    Site("large", Path("/usr/share/doc/openjdk-17-jre-headless/api"), "openjdk-17-doc"),
    Site("large", Path("/usr/share/doc/rust-doc/html"), "rust-doc"),
)
"""Ten thousand pages and more: minutes for each contender, so only crawled when asked for. Either will do."""


def site_called(name: str) -> Site:
    """A real site; of the large ones the first that is on this machine."""
    if name != LARGE_SITES[0].name:
        return REAL_SITES[name]
    return next((site for site in LARGE_SITES if not site.missing()), LARGE_SITES[0])


def one_page_site(folder: Path) -> Site:
    """A site of a single page without links, made in `folder`: crawling it costs what a program's start costs."""
    folder.mkdir(parents=True)
    (folder / _INDEX).write_text("<!doctype html><title>one</title><p>The only page.\n", encoding="utf-8")
    return Site("one", folder)


def pages_of(site: Site) -> frozenset[str]:
    """Request targets (path and query) of every page that links lead to from the site's root."""
    known = {"/"}
    waiting = deque(known)
    while waiting:
        target = waiting.popleft()
        for link in _links_of(site, target):
            if link not in known and _file_of(site, link) is not None:
                known.add(link)
                waiting.append(link)
    return frozenset(known)


def fingerprint(site: Site) -> str:
    """Twelve hexadecimal digits that change with any name or byte of the site: a package update is another site."""
    digest = hashlib.sha256()
    for path in sorted(path for path in site.folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(site.folder)}\n{path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _file_of(site: Site, target: str) -> Path | None:
    """The HTML file that a server answers `target` with, or None."""
    path = unquote(target.partition("?")[0])
    file = site.folder / (path.lstrip("/") + (_INDEX if path.endswith("/") else ""))
    return file if file.suffix in _PAGES and file.is_file() else None


def _links_of(site: Site, target: str) -> list[str]:
    file = _file_of(site, target)
    if file is None:
        return []
    tree = LexborHTMLParser(file.read_bytes())
    texts = {node.attributes.get("href") or "" for node in tree.css("a[href], area[href]")}
    found = {text.partition("#")[0].strip() for text in texts} - {""}
    return [_target(joined) for text in found if (joined := urljoin(_BASE + target, text)).startswith(_BASE + "/")]


def _target(url: str) -> str:
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")
