"""`python -m bench.identity`: how often a crawler asks for one page that is linked under many addresses.

usage: python -m bench.identity [--peers-python PATH] [--peers-node FOLDER] [--only NAME]

`bench.spelled` is the site. Each contender crawls it once, with what it does by default, or as its documentation
shows. What counts are requests for each page, and pages that nobody asked for: whoever folds too much loses some.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import processes, table
from bench.contenders import Contender, add_peers, chosen, present
from bench.spelled import Web, spelled


@dataclass(frozen=True, slots=True)
class Row:
    """What one contender asked for."""

    contender: str
    there: int
    """Pages there are, without copies under other addresses."""
    missed: int
    requests: int
    """For these pages."""
    copies: int
    """Requests for copies."""
    exit: int

    @property
    def asked_once(self) -> float:
        """Requests for a page that was asked for at all; 1 is right."""
        return self.requests / (self.there - self.missed) if self.there > self.missed else 0.0


def measure(contender: Contender, limit: float = 300) -> Row:
    """One crawl of the site, seen from the server."""
    web = Web()
    with spelled(web) as root, tempfile.TemporaryDirectory(prefix="bench-identity-") as name:
        folder = Path(name) / "crawl"
        folder.mkdir()
        used = processes.run(contender.command(root), folder, limit)
    asked = {page: web.asked[page] for page in web.pages if web.asked[page]}
    return Row(
        contender.name,
        len(web.pages),
        len(web.pages) - len(asked),
        sum(asked.values()),
        sum(web.asked[page] for page in web.copies),
        used.exit,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.identity")
    add_peers(parser)
    options = parser.parse_args(arguments)
    found = [measure(each) for each in present(chosen(options))]
    rows = [
        (
            each.contender,
            str(each.there),
            str(each.missed),
            str(each.requests),
            f"{each.asked_once:.2f}",
            str(each.copies),
            str(each.exit),
        )
        for each in sorted(found, key=lambda each: (each.missed, each.requests))
    ]
    header = ("contender", "pages", "missed", "requests for them", "a page", "for copies", "exit")
    print(table.markdown(header, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
