"""What the web server was asked for, read from its own log. Pure but for reading the file.

A page is a request that was answered with 200 and HTML; all else (robots.txt, style sheets, errors) is counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from pathlib import Path

FORMAT = r"$status\t$connection\t$request_method\t$sent_http_content_type\t$request_uri"
"""nginx's words for the fields below; it escapes control characters, so that a tab always parts two fields."""

_FIELDS = 5


@dataclass(slots=True)
class Requests:
    """All requests of one run."""

    pages: Counter[str] = field(default_factory=Counter)
    """How often each page was asked for, by its request target."""
    others: int = 0
    connections: set[str] = field(default_factory=set)

    def missed(self, expected: Set[str]) -> int:
        """Expected pages that were never asked for."""
        return len(expected - self.pages.keys())

    def beyond(self, expected: Set[str]) -> int:
        """Pages asked for that nobody expected."""
        return len(self.pages.keys() - expected)

    @property
    def repeats(self) -> int:
        """Requests for a page after its first."""
        return self.pages.total() - len(self.pages)


def read(lines: Iterable[str]) -> Requests:
    """Sum up the lines of a log; the last may still be half written and is then left out."""
    requests = Requests()
    for line in lines:
        fields = line.rstrip("\n").split("\t")
        if len(fields) != _FIELDS or not line.endswith("\n"):
            continue
        status, connection, method, kind, target = fields
        requests.connections.add(connection)
        if status == "200" and method == "GET" and kind.startswith("text/html"):
            requests.pages[target.partition("#")[0]] += 1
        else:
            requests.others += 1
    return requests


class AccessLog:
    """A log file that grows, read from a mark on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._start = 0

    def mark(self) -> None:
        """Forget what was asked for until now."""
        self._start = self._path.stat().st_size

    def grown(self) -> int:
        """Bytes since the mark."""
        return self._path.stat().st_size - self._start

    def requests(self) -> Requests:
        """What was asked for since the mark."""
        with self._path.open(encoding="latin-1", newline="\n") as file:
            file.seek(self._start)
            return read(file)
