"""Content identity in PostgreSQL: see `frontier.content` for what is judged.

The caller holds the hosts. What two workers may want at once is taken in the order of its numbers: texts, rows of the
index of near-duplicates, pages, the totals' own row last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crawlspace.frontier.content import EXACT, KNOWN, LINKS, NEAR, STOPPED, Judging
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
from crawlspace.frontier.postgres.book import SLOTS
from crawlspace.frontier.postgres.columns import blobs, keys, numbers, texts
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
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

_SQL = queries("content.sql")
_TOTALS = (EXACT, NEAR, STOPPED, LINKS, KNOWN)


class Contents:
    """The content index, inside a transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._of = transaction.shards.of

    # -- what a settlement writes ---------------------------------------------------------------------------

    async def keep(self, settlements: Sequence[Settlement], done: Mapping[int, bool], found: Found) -> None:
        """Judge the pages that were finished just now, and keep what they are known by.

        `done` holds the numbers of those that are done with a page, and whether another URL had its bytes first.
        """
        arrivals = finished(settlements, done)
        if arrivals:
            judging = Judging(arrivals, found, self._transaction.settings, self._transaction.now)
            await self._read(judging)
            judging.judge()
            await self._write(judging, {each.id: self._of(each.hid) for each in arrivals})

    async def _read(self, judging: Judging) -> None:
        known, ask = judging.known, self._transaction.rows
        firsts = judging.firsts()
        if firsts:
            texts_said = {"key": numbers(firsts), "id": numbers(firsts.values())}
            await self._transaction.run(_SQL["claim_texts"], **texts_said)
            known.said.update(dict(await ask(_SQL["said"], key=numbers([*firsts, *judging.follows()]))))
        rows = numbers(judging.rows())
        if judging.rows():
            await self._transaction.run(_SQL["make_rows"], key=rows)
            known.rows.update({key: bytes(members) for key, members in await ask(_SQL["rows"], key=rows)})
        await self._read_shapes(judging, judging.shapes())
        await self._read_shapes(judging, judging.led_to())
        for hid, host in (await self._hosts(judging.hosts())).items():
            known.hosts[hid] = host
        pages, depths = await self._pages(judging.pages())
        known.pages.update(pages)
        known.done.update(depths)

    async def _read_shapes(self, judging: Judging, shapes: Sequence[tuple[int, str]]) -> None:
        if not shapes:
            return
        places = {"shard": numbers(self._of(hid) for hid, _ in shapes), "hid": numbers(hid for hid, _ in shapes)}
        for hid, shape, *row in await self._transaction.rows(
            _SQL["shapes_of"], **places, shape=texts(shape for _, shape in shapes)
        ):
            judging.known.shapes[hid, shape] = ShapeRow(*row)

    async def _write(self, judging: Judging, shards: dict[int, int]) -> None:
        known, written, run = judging.known, judging.written, self._transaction.run
        if written.said:
            said = sorted(written.said.items())
            await run(_SQL["say"], key=numbers(key for key, _ in said), id=numbers(of for _, of in said))
        if written.rows:
            rows = sorted(written.rows)
            await run(_SQL["write_rows"], key=numbers(rows), members=blobs(known.rows[key] for key in rows))
        await self._write_pages([known.pages[number] for number in sorted(written.pages)], shards)
        if written.shapes:
            await self._write_shapes(judging)
        hids = sorted(written.hosts)
        await run(
            _SQL["write_hosts"],
            **self._columns(
                [(hid, known.hosts[hid]) for hid in hids],
                ("pages", "exact", "near", "shapes", "pairs", "links", "known"),
            ),
        )
        hours = sorted(written.yields.items())
        await run(
            _SQL["add_hours"],
            hour=numbers(hour for (_, hour), _ in hours),
            **self._columns(
                [(hid, row) for (hid, _), row in hours], ("pages", "copies", "exact", "near", "links", "known")
            ),
        )
        if any(written.totals.values()):
            moved = {name: written.totals[name] for name in _TOTALS}
            await run(_SQL["add_totals"], slot=self._transaction.worker % SLOTS, **moved)

    async def _write_pages(self, pages: Sequence[PageRow], shards: dict[int, int]) -> None:
        """Pages that are new are set whole; others only begin a group, which a worker may do at the same time."""
        ours = [page for page in pages if page.id in shards]
        others = [page.id for page in pages if page.id not in shards]
        if ours:
            await self._transaction.run(
                _SQL["write_pages"],
                shard=numbers(shards[page.id] for page in ours),
                text=keys(page.text for page in ours),
                language=texts(page.language for page in ours),
                sign=texts(page.sign for page in ours),
                whole=numbers(bool(page.whole) for page in ours),
                **{
                    name: numbers(getattr(page, name) for page in ours)
                    for name in ("id", "follow", "near", "kin", "length", "verdict", "copy_of", "grp", "stopped_by")
                },
            )
        if others:
            await self._transaction.run(_SQL["begin_groups"], id=numbers(others))

    async def _write_shapes(self, judging: Judging) -> None:
        rows = [(place, judging.known.shapes[place]) for place in sorted(judging.written.shapes)]
        await self._transaction.run(
            _SQL["write_shapes"],
            shape=texts(shape for (_, shape), _ in rows),
            latest=blobs(row.latest for _, row in rows),
            **self._columns(
                [(hid, row) for (hid, _), row in rows], ("pages", "new", "exact", "near", "dry", "run", "last")
            ),
        )

    def _columns(self, rows: Sequence[tuple[int, Any]], names: Sequence[str]) -> dict[str, str]:
        """Rows of hosts, one parameter a column."""
        columns = {name: numbers(getattr(row, name) for _, row in rows) for name in names}
        hids = [hid for hid, _ in rows]
        return {"shard": numbers(self._transaction.shards.each(hids)), "hid": numbers(hids), **columns}

    # -- what is asked before -------------------------------------------------------------------------------

    async def trodden(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        """The claims, those of traps put last or refused."""
        return trodden(claims, await self._treads(led(claims)), self._transaction.settings)

    async def warned(self, leases: Sequence[Lease]) -> list[Lease]:
        """The leases, each with the traps of its host."""
        treads = await self._treads(sorted({lease.host.hid for lease in leases}))
        return warned(leases, treads, self._transaction.settings)

    async def _treads(self, hids: Sequence[int]) -> Treads:
        least = least_run(self._transaction.settings)
        found: dict[int, dict[str, int]] = {}
        if least and hids:
            columns = {"shard": numbers(self._transaction.shards.each(hids)), "hid": numbers(hids)}
            for hid, shape, run in await self._transaction.rows(_SQL["runs"], **columns, least=least):
                found.setdefault(hid, {})[shape] = run
        return found

    async def copies(self, pages: Sequence[Copied]) -> list[int | None]:
        """For each page, the page on whose account its links need not be followed."""
        wanted = sorted({key for page in pages for key in keys_of(page)})
        said: dict[int, int] = dict(await self._transaction.rows(_SQL["said"], key=numbers(wanted)))
        firsts, depths = await self._pages(sorted(set(said.values())))
        hosts = await self._hosts(sorted({page.hid for page in pages}))
        proven = {hid for hid, row in hosts.items() if row.pairs >= PAIRS}
        return [stopped_by(page, said, firsts, depths, proven=page.hid in proven) for page in pages]

    # -- what people ask ------------------------------------------------------------------------------------

    async def contents(self, wanted: Sequence[int]) -> list[PageContent | None]:
        found, _ = await self._pages(sorted(set(wanted)))
        return [content_of(found[number]) if number in found else None for number in wanted]

    async def groups(self, after: tuple[int, int], limit: int) -> list[PageContent]:
        rows = await self._transaction.rows(_SQL["groups"], group=after[0], id=after[1], limit=limit)
        return [content_of(_page_row(row)) for row in rows]

    async def addresses(self, wanted: Sequence[int]) -> list[str | None]:
        everywhere = numbers(range(self._transaction.shards.number))
        rows = await self._transaction.rows(_SQL["addresses"], all=everywhere, id=numbers(wanted))
        found: dict[int, str] = dict(rows)
        return [found.get(number) for number in wanted]

    async def shapes(self, hid: int | None, run: int, limit: int) -> list[ShapeFigures]:
        name = "shapes_of_host" if hid is not None else "suspects" if run else "shapes"
        shard = None if hid is None else self._of(hid)
        rows = await self._transaction.rows(_SQL[name], shard=shard, hid=hid, run=run, limit=limit)
        return [ShapeFigures(*row) for row in rows]

    async def yields(self, hid: int | None) -> list[Yield]:
        return [Yield(*row) for row in await self._transaction.rows(_SQL["hours"], hid=hid)]

    async def totals(self) -> dict[str, int]:
        (row,) = await self._transaction.rows(_SQL["totals"])
        return dict(zip(_TOTALS, row, strict=True))

    async def probe(self, hid: int) -> Probe | None:
        rows = await self._transaction.rows(_SQL["probe"], shard=self._of(hid), hid=hid)
        return Probe(rows[0][0], rows[0][1], bytes(rows[0][2]), unsigned(rows[0][3]), rows[0][4]) if rows else None

    async def keep_probe(self, hid: int, probe: Probe) -> None:
        await self._transaction.run(
            _SQL["keep_probe"],
            shard=self._of(hid),
            hid=hid,
            at=probe.at,
            status=probe.status,
            digest=probe.digest,
            near=signed(probe.simhash),
            length=probe.length,
        )

    # -- reading --------------------------------------------------------------------------------------------

    async def _pages(self, wanted: Sequence[int]) -> tuple[dict[int, PageRow], dict[int, int]]:
        """Pages by number, and the depths of those that are done."""
        rows = await self._transaction.rows(_SQL["pages"], id=numbers(wanted)) if wanted else []
        pages = {row[0]: _page_row(row[:-1]) for row in rows}
        return pages, {row[0]: row[-1] for row in rows if row[-1] is not None}

    async def _hosts(self, hids: Sequence[int]) -> dict[int, HostRow]:
        rows = await self._transaction.rows(
            _SQL["hosts"], shard=numbers(self._transaction.shards.each(hids)), hid=numbers(hids)
        )
        return {hid: HostRow(*row) for hid, *row in rows}


def _page_row(row: Sequence[Any]) -> PageRow:
    number, text, *rest = row
    return PageRow(number, text.bytes, *rest)
