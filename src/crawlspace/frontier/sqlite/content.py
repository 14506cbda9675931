"""Content identity in SQLite: see `frontier.content` for what is judged. Inside a caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crawlspace.frontier.content import Judging
from crawlspace.frontier.content_rows import (
    Found,
    HostRow,
    PageRow,
    ShapeRow,
    content_of,
    finished,
    signed,
    unsigned,
)
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sql import chunks, listed, statements
from crawlspace.frontier.treads import PAIRS, Treads, keys_of, least_run, led, stopped_by, trodden, warned
from crawlspace.types import (
    Claim,
    Copied,
    Lease,
    PageContent,
    Probe,
    Settlement,
    ShapeFigures,
    Yield,
)

_SQL = statements(__package__, "content.sql")


class Contents:
    """The content index of one store."""

    def __init__(self, connection: sqlite3.Connection, settings: FrontierSettings) -> None:
        self._connection = connection
        self._settings = settings

    # -- what a settlement writes ---------------------------------------------------------------------------

    def keep(self, settlements: Sequence[Settlement], done: Mapping[int, bool], found: Found, now: int) -> None:
        """Judge the pages that were finished just now, and keep what they are known by.

        `done` holds the numbers of those that are done with a page, and whether another URL had its bytes first.
        """
        arrivals = finished(settlements, done)
        if arrivals:
            self._judge(Judging(arrivals, found, self._settings, now))

    def _judge(self, judging: Judging) -> None:
        known = judging.known
        known.said.update(self._of_all("said", sorted({*judging.firsts(), *judging.follows()})))
        known.rows.update(self._of_all("rows", judging.rows()))
        for hid, *row in self._of_all("hosts", judging.hosts()):
            known.hosts[hid] = HostRow(*row)
        self._read_shapes(judging, judging.shapes())
        self._read_shapes(judging, judging.led_to())
        pages = judging.pages()
        known.pages.update(self._pages(pages))
        known.done.update(number for number, _ in self._of_all("done_before", sorted(known.pages)))
        judging.judge()
        self._write(judging)

    def _read_shapes(self, judging: Judging, shapes: Sequence[tuple[int, str]]) -> None:
        for shape in shapes:
            found = self._connection.execute(_SQL["shape"], shape).fetchone()
            if found is not None:
                judging.known.shapes[shape] = ShapeRow(*found)

    def _write(self, judging: Judging) -> None:
        known, written, many = judging.known, judging.written, self._connection.executemany
        many(_SQL["say"], sorted(written.said.items()))
        many(_SQL["write_row"], [(key, known.rows[key]) for key in sorted(written.rows)])
        many(_SQL["write_page"], [known.pages[number] for number in sorted(written.pages)])
        rows = [(hid, known.hosts[hid]) for hid in sorted(written.hosts)]
        many(
            _SQL["write_host"],
            [(hid, r.pages, r.exact, r.near, r.shapes, r.pairs, r.links, r.known) for hid, r in rows],
        )
        shapes = [(place, known.shapes[place]) for place in sorted(written.shapes)]
        many(
            _SQL["write_shape"],
            [(*of, r.pages, r.new, r.exact, r.near, r.dry, r.run, r.last, r.latest) for of, r in shapes],
        )
        hours = [
            (hour, hid, y.pages, y.copies, y.exact, y.near, y.links, y.known)
            for (hid, hour), y in written.yields.items()
        ]
        many(_SQL["add_hour"], sorted(hours))
        many(_SQL["add_total"], [(n, name) for name, n in written.totals.items() if n])

    # -- what is asked before -------------------------------------------------------------------------------

    def trodden(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        """The claims, those of traps put last or refused."""
        # Most crawls meet no trap: one look then spares looking at each claim.
        return trodden(claims, self._treads(led(claims)), self._settings) if self._is_any_trodden() else claims

    def warned(self, leases: Sequence[Lease]) -> list[Lease]:
        """The leases, each with the traps of its host."""
        if not self._is_any_trodden():
            return list(leases)
        return warned(leases, self._treads(sorted({lease.host.hid for lease in leases})), self._settings)

    def _is_any_trodden(self) -> bool:
        least = least_run(self._settings)
        return least > 0 and self._connection.execute(_SQL["any_run"], (least,)).fetchone() is not None

    def _treads(self, hosts: Sequence[int]) -> Treads:
        least = least_run(self._settings)
        treads: dict[int, dict[str, int]] = {}
        for chunk in chunks(hosts if least else ()):
            for hid, shape, run in self._connection.execute(listed(_SQL["runs"], len(chunk)), [*chunk, least]):
                treads.setdefault(hid, {})[shape] = run
        return treads

    def copies(self, pages: Sequence[Copied]) -> list[int | None]:
        """For each page, the page on whose account its links need not be followed."""
        said = dict(self._of_all("said", sorted({key for page in pages for key in keys_of(page)})))
        firsts = dict(self._pages(sorted(set(said.values()))))
        depths = dict(self._of_all("done_before", sorted(firsts)))
        hosts = {hid: row[4] >= PAIRS for hid, *row in self._of_all("hosts", sorted({page.hid for page in pages}))}
        return [stopped_by(page, said, firsts, depths, proven=hosts.get(page.hid, False)) for page in pages]

    # -- what people ask ------------------------------------------------------------------------------------

    def contents(self, numbers: Sequence[int]) -> list[PageContent | None]:
        found = dict(self._pages(sorted(set(numbers))))
        return [content_of(found[number]) if number in found else None for number in numbers]

    def groups(self, after: tuple[int, int], limit: int) -> list[PageContent]:
        rows = self._connection.execute(_SQL["groups"], (*after, limit))
        return [content_of(PageRow(*row[1:])) for row in rows]

    def addresses(self, numbers: Sequence[int]) -> list[str | None]:
        found: dict[int, str] = dict(self._of_all("addresses", sorted(set(numbers))))
        return [found.get(number) for number in numbers]

    def shapes(self, hid: int | None, run: int, limit: int) -> list[ShapeFigures]:
        name = "shapes_of_host" if hid is not None else "suspects" if run else "shapes"
        rows = self._connection.execute(_SQL[name], {"hid": hid, "run": run, "limit": limit})
        return [ShapeFigures(*row) for row in rows]

    def yields(self, hid: int | None) -> list[Yield]:
        return [Yield(*row) for row in self._connection.execute(_SQL["hours"], {"hid": hid})]

    def totals(self) -> dict[str, int]:
        return dict(self._connection.execute(_SQL["totals"]).fetchall())

    def probe(self, hid: int) -> Probe | None:
        row = self._connection.execute(_SQL["probe"], (hid,)).fetchone()
        return None if row is None else Probe(row[0], row[1], row[2], unsigned(row[3]), row[4])

    def keep_probe(self, hid: int, probe: Probe) -> None:
        row = (hid, probe.at, probe.status, probe.digest, signed(probe.simhash), probe.length)
        self._connection.execute(_SQL["keep_probe"], row)

    # -- reading --------------------------------------------------------------------------------------------

    def _pages(self, numbers: Sequence[int]) -> Iterator[tuple[int, PageRow]]:
        return ((row[0], PageRow(*row)) for row in self._of_all("pages", numbers))

    def _of_all(self, name: str, values: Sequence[int]) -> Iterator[tuple[Any, ...]]:
        for chunk in chunks(values):
            yield from self._connection.execute(listed(_SQL[name], len(chunk)), chunk)
