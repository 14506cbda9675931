"""The rest of a re-keying, once every URL has its new key: what names merged URLs, and hosts that are left over.

Each step is one transaction of the caller, goes on where the last one ended, and changes nothing when it is repeated.
What a merged page said is forgotten: it is one page with another now. Where it stands for itself again, it is fetched
again and known from then on.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple
from uuid import UUID

from crawlspace.frontier.counters import DUPLICATES, HOSTS
from crawlspace.frontier.postgres.columns import numbers, texts
from crawlspace.frontier.postgres.rekey_move import hosts_in, slow_down
from crawlspace.frontier.postgres.sessions import Row, queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.frontier.rekeying import Cursor, Named, Naming
from crawlspace.policy.groups import address_name, domain_name
from crawlspace.types import Reason, Verdict, host_id

_SQL = queries("rekey_rest.sql")
_MOVE = queries("rekey_move.sql")


class _Host(NamedTuple):
    shard: int
    hid: int
    name: str
    seed: bool
    met: bool
    fetched: int
    discovered: int
    has_urls: bool
    has_refusals: bool


class Rest:
    """One step, inside a transaction of the caller."""

    def __init__(self, transaction: Transaction, naming: Naming) -> None:
        self._transaction = transaction
        self._naming = naming
        self._book = transaction.book

    # -- what names merged URLs -----------------------------------------------------------------------------

    async def outcomes(self, after: Cursor, limit: int) -> Cursor | None:
        """The next outcomes name who stayed as their parent and first copy."""
        end = await self._point("outcome", after, limit)
        if end is not None:
            between = _between(after, end)
            await self._transaction.run(_SQL["no_own_parent"], **between)
            for (hid,) in await self._transaction.rows(_SQL["no_own_copy"], **between):
                self._book.host(hid).duplicates -= 1
                self._book.add(DUPLICATES, -1)
        return end

    async def queue(self, after: Cursor, limit: int) -> Cursor | None:
        """The next queued URLs name who stayed as their parent."""
        return await self._point("queue", after, limit)

    async def delayed(self, after: Cursor, limit: int) -> Cursor | None:
        """The next delayed URLs name who stayed as their parent."""
        return await self._point("delayed", after, limit)

    async def visits(self, after: Cursor, limit: int) -> Cursor | None:
        """The next earlier visits name who stayed as their first copy."""
        return await self._point("visit", after, limit)

    async def content(self, after: Cursor, limit: int) -> Cursor | None:
        """The next bytes belong to who stayed."""
        return await self._point("content", after, limit)

    async def said(self, after: Cursor, limit: int) -> Cursor | None:
        """The next texts belong to who stayed."""
        return await self._point("said", after, limit)

    async def pages(self, after: Cursor, limit: int) -> Cursor | None:
        """The next pages name who stayed; merged ones go."""
        end = await self._point("page", after, limit)
        if end is None:
            return None
        between = _between(after, end)
        merged = await self._transaction.rows(_SQL["count_merged"], **between)
        own = await self._transaction.rows(_SQL["count_own"], **between)
        await self._uncount(merged, own)
        for statement in ("no_own_copies", "drop_pages"):
            await self._transaction.run(_SQL[statement], **between)
        return end

    async def _point(self, table: str, after: Cursor, limit: int) -> Cursor | None:
        found = await self._transaction.rows(_SQL[f"{table}_end"], limit=limit, **named("a", after))
        if not found or found[0][0] is None:
            return None
        end = tuple(value.hex if isinstance(value, UUID) else value for value in found[0])
        await self._transaction.run(_SQL[f"point_{table}"], **_between(after, end))
        return end

    async def _uncount(self, merged: list[Row], own: list[Row]) -> None:
        """Pages count no longer, or as firsts: for those hosts, and in all."""
        lost: Counter[tuple[int, str]] = Counter()
        for rows, is_gone in ((merged, True), (own, False)):
            for hid, verdict, n in rows:
                lost[hid, "pages"] += n if is_gone else 0
                lost[hid, "exact"] += n if verdict == Verdict.EXACT else 0
                lost[hid, "near"] += n if verdict == Verdict.NEAR else 0
        hids = sorted({hid for hid, _ in lost})
        if not hids:
            return
        columns = {what: [lost[hid, what] for hid in hids] for what in ("pages", "exact", "near")}
        where = hosts_in(self._transaction, hids)
        counts = {what: numbers(values) for what, values in columns.items()}
        await self._transaction.run(_SQL["uncount_hosts"], **where, **counts)
        await self._transaction.run(_SQL["uncount_totals"], exact=sum(columns["exact"]), near=sum(columns["near"]))

    # -- hosts ----------------------------------------------------------------------------------------------

    async def hosts(self, after: Cursor, limit: int) -> Cursor | None:
        """The next hosts: one without URLs leaves what it was to the host that has its name, or goes."""
        rows = await self._transaction.rows(_SQL["hosts_after"], limit=limit, **named("a", after))
        hosts = list(map(_Host._make, rows))
        if not hosts:
            return None
        where = hosts_in(self._transaction, [host.hid for host in hosts])
        await self._transaction.run(_SQL["drop_empty_refusals"], **where)
        for host in hosts:
            if not host.has_urls:
                await self._settle(host)
        return hosts[-1].shard, hosts[-1].hid

    async def _settle(self, host: _Host) -> None:
        heir = self._naming.heir(host.name)
        new = host_id(heir.key)
        if new == host.hid and (host.fetched or host.discovered or host.has_refusals):
            return
        moves = self._moves(host.hid, new)
        if new != host.hid:
            await self._leave(host, heir)
            for statement in ("inherit_host", "inherit_hours", "inherit_shapes"):
                await self._transaction.run(_SQL[statement], **moves)
        old = {"old_shard": moves["old_shard"], "old": moves["old"]}
        for statement in ("drop_refusals", "drop_host", "leave_host", "leave_hours", "leave_shapes"):
            await self._transaction.run(_SQL[statement], **old)
        if host.met:
            self._book.add(HOSTS, -1)

    async def _leave(self, host: _Host, heir: Named) -> None:
        """Pace, counters and counted refusals go to the heir."""
        new = host_id(heir.key)
        where = hosts_in(self._transaction, [new])
        names = {"name": texts([heir.host]), "seed": numbers([heir.seed])}
        await self._transaction.run(_MOVE["add_hosts"], **names, **where)
        [(_, _, met)] = await self._transaction.rows(_MOVE["hosts"], **where)
        await slow_down(self._transaction, [(host.hid, new)])
        await self._transaction.run(_SQL["inherit_refusals"], **self._moves(host.hid, new))
        delta = self._book.host(new)
        delta.fetched += host.fetched
        delta.discovered += host.discovered
        delta.seed = max(delta.seed, int(host.seed), int(heir.seed))
        if host.met and not met:
            delta.met = 1
            self._book.add(HOSTS, 1)
        await self._transaction.write_hosts()

    def _moves(self, old: int, new: int) -> dict[str, int]:
        shard = self._transaction.shards.of
        return {"old_shard": shard(old), "old": old, "new_shard": shard(new), "new": new}

    async def crowds(self, after: Cursor, limit: int) -> Cursor | None:
        """The next hosts are counted for their domain and their address, which were counted under the old names."""
        if after == BEFORE_HOSTS:
            await self._transaction.run(_SQL["forget_crowds"])
        reason = Reason.DOMAIN_HOSTS.value
        rows = await self._transaction.rows(_SQL["counted_hosts"], limit=limit, reason=reason, **named("a", after))
        hosts: Counter[str] = Counter()
        refused: Counter[str] = Counter()
        for _, _, name, met, was_refused, address in rows:
            if met or was_refused:
                hosts[domain_name(name)] += met
                refused[domain_name(name)] += was_refused
            if address is not None:
                hosts[address_name(address)] += 1
        names = sorted(hosts)
        if names:
            counts = {"hosts": numbers(map(hosts.get, names)), "refused": numbers(refused[name] for name in names)}
            await self._transaction.run(_SQL["grow_crowds"], name=texts(names), **counts)
        return (rows[-1][0], rows[-1][1]) if rows else None


BEFORE_HOSTS: Cursor = (-1, -1)


def named(letter: str, cursor: Cursor) -> dict[str, int | str]:
    """A place in a table as parameters."""
    return {f"{letter}{place}": value for place, value in enumerate(cursor)}


def _between(after: Cursor, end: Cursor) -> dict[str, int | str]:
    return {**named("a", after), **named("b", end)}
