"""Turns of pace groups: a host that may be visited is leased only when its group has a turn for it.

A group has as many turns as it may have hosts visited at once. One worker has all that are given at a time, so that
its own clock can keep the requests to the group apart; from worker to worker the group's next time does. A host that
gets no turn leaves the queue of due hosts (`parked` says `group`) and is called again when a turn is free and its
time has come, the longest waiting first: what a lease reads does not grow with the number of those that wait.

Groups are held after their hosts. Leases pass over groups that somebody else holds, so that they never wait for one;
those who give turns back wait, in the order of names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from crawlspace.frontier.bounds import CALLED_AT_ONCE
from crawlspace.frontier.postgres.columns import numbers, texts
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.policy.groups import PaceGroup

_SQL = queries("groups.sql")
_WAKE_SQL = queries("wake.sql")


class Asking(NamedTuple):
    """A held host that wants a turn of its group."""

    hid: int
    group: PaceGroup


@dataclass(slots=True)
class _Turns:
    """A held group as a lease finds it, and as it goes on."""

    next_at: int
    free: int
    wanted: bool | None = None
    """None: as it was."""


async def call(transaction: Transaction, worker: int) -> None:
    """Hosts that wait for a group which has turns and whose time has come may be visited again."""
    due = await transaction.rows(_SQL["due"], now=transaction.now, worker=worker, limit=CALLED_AT_ONCE)
    if not due:
        return
    grouping = transaction.settings.grouping()
    groups = {name: grouping.named(name) for (name,) in due}
    free = await _free(transaction, [group for group in groups.values() if group is not None], worker)
    # A group that the settings of now do not make keeps nobody waiting.
    most = {name: free.get(name, CALLED_AT_ONCE) for name in groups}
    waiting = await transaction.rows(_SQL["call"], name=texts(most), most=numbers(most.values()))
    if waiting:
        await transaction.run(_WAKE_SQL["unpark"], **_hosts(transaction, [hid for hid, _ in waiting]))
    called = [name for _, name in waiting]
    await _rest(transaction, [name for name in most if called.count(name) < most[name] or most[name] == 0], worker)


async def admit(transaction: Transaction, asking: Sequence[Asking], worker: int, *, meet: bool) -> set[int]:
    """Give these hosts turns of their groups, the first ones first; the numbers of those that got one.

    The others wait, but for those whose group somebody else holds at this moment. Groups that nobody named before are
    made with `meet`, once in a transaction; else they are passed over too.
    """
    groups = {each.group.name: each.group for each in asking}
    if not groups:
        return set()
    if meet:
        await transaction.run(_SQL["meet"], name=texts(sorted(groups)))
    held: dict[str, int] = dict(await transaction.rows(_SQL["hold_free"], name=texts(sorted(groups))))
    free = await _free(transaction, [groups[name] for name in held], worker)
    turns = {name: _Turns(next_at, free[name]) for name, next_at in held.items()}
    admitted: set[int] = set()
    parked: dict[int, str] = {}
    for hid, group in asking:
        if group.name not in turns:
            continue
        if _take(turns[group.name], transaction.now):
            admitted.add(hid)
        else:
            parked[hid] = group.name
    if parked:
        ordered = sorted(parked)
        await transaction.run(
            _SQL["park"], name=texts(parked[hid] for hid in ordered), **_hosts(transaction, ordered)
        )
    await _want(transaction, {name: each.wanted for name, each in turns.items() if each.wanted is not None})
    return admitted


def _take(turns: _Turns, now: int) -> bool:
    if turns.free > 0 and turns.next_at <= now:
        turns.free -= 1
        if not turns.free:
            turns.wanted = False
        return True
    if turns.free > 0:
        turns.wanted = True
    return False


async def give_back(transaction: Transaction, hosts: Mapping[int, int]) -> None:
    """Leased hosts are about to be let go: their groups' turns are free, and the groups wait until these times."""
    await _give_back(transaction, {hid: (next_at, 0) for hid, next_at in hosts.items()})


async def give_up(transaction: Transaction, hids: Collection[int]) -> None:
    """Leases are lost: nobody knows when their last requests started, so the groups wait all their delay from now."""
    await _give_back(transaction, dict.fromkeys(hids, (transaction.now, 1)))


async def clamp(transaction: Transaction, bound: int) -> None:
    """Let no group wait for a time that only a wrong clock can have written."""
    await transaction.run(_SQL["clamp"], bound=bound)


async def _give_back(transaction: Transaction, hosts: Mapping[int, tuple[int, int]]) -> None:
    """Each host with a time for its group, and how many of its group's delays are added."""
    found = await transaction.rows(_SQL["of_hosts"], **_hosts(transaction, sorted(hosts)))
    grouping = transaction.settings.grouping()
    next_at: dict[str, int] = {}
    for hid, name in found:
        base, delays = hosts[hid]
        group = grouping.named(name)
        time = base + delays * (0 if group is None else group.delay_ms)
        next_at[name] = max(next_at.get(name, 0), time)
    if next_at:
        ordered = sorted(next_at)
        await transaction.rows(_SQL["hold"], name=texts(ordered))
        await transaction.run(
            _SQL["give_back"], name=texts(ordered), next_at=numbers(next_at[name] for name in ordered)
        )


async def _free(transaction: Transaction, groups: Collection[PaceGroup], worker: int) -> dict[str, int]:
    """How many turns of groups this worker could have, by name."""
    if not groups:
        return {}
    rows = await transaction.rows(_SQL["leased"], name=texts(group.name for group in groups), worker=worker)
    leased = {name: (n, foreign) for name, n, foreign in rows}
    free: dict[str, int] = {}
    for group in groups:
        n, foreign = leased.get(group.name, (0, False))
        free[group.name] = 0 if foreign else max(0, group.concurrency - n)
    return free


async def _rest(transaction: Transaction, names: Collection[str], worker: int) -> None:
    """Look after these groups no longer, unless somebody waits for a turn that is free."""
    if not names:
        return
    held = [name for name, _ in await transaction.rows(_SQL["hold_free"], name=texts(sorted(names)))]
    grouping = transaction.settings.grouping()
    left = {name for (name,) in await transaction.rows(_SQL["left"], name=texts(held))}
    groups = [group for name in left if (group := grouping.named(name)) is not None]
    free = await _free(transaction, groups, worker)
    await _want(transaction, {name: False for name in held if name not in left or free.get(name) == 0})


async def _want(transaction: Transaction, wanted: Mapping[str, bool]) -> None:
    if wanted:
        await transaction.run(_SQL["want"], name=texts(wanted), wanted=numbers(wanted.values()))


def _hosts(transaction: Transaction, hids: Iterable[int]) -> dict[str, str]:
    listed = list(hids)
    return {"shard": numbers(map(transaction.shards.of, listed)), "hid": numbers(listed)}
