"""Claims: which links are new, and what a repeated one can still change.

First a look, without holding anything: most links lead to known URLs, and most of those change nothing. The hosts of
the others are held, which makes two finders of one URL one after the other, and looked at again. Whoever comes first
wins, inside a batch too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crawlspace.frontier.counters import REFUSED_BEYOND_CAP
from crawlspace.frontier.postgres.columns import keys, numbers, texts
from crawlspace.frontier.postgres.content import Contents
from crawlspace.frontier.postgres.crowds import Strangers, count_only, hold_domains, strangers
from crawlspace.frontier.postgres.hosts import HeldHost, hold
from crawlspace.frontier.postgres.judging import Found, Host, Judging, Limits, Refusals
from crawlspace.frontier.postgres.sessions import Row, queries
from crawlspace.frontier.postgres.transaction import Asked, Transaction
from crawlspace.frontier.postgres.urls import Named, Urls
from crawlspace.types import HOST_BYTES, PATH_DEPENDENT, Claim, Claimed, Reason

_SQL = queries("claim.sql")

_UNDONE = texts(sorted(PATH_DEPENDENT))


class Claiming:
    """One batch of claims. `look` says which hosts it needs; `run` judges and writes when they are held."""

    def __init__(self, transaction: Transaction, claims: Sequence[Claim]) -> None:
        self._transaction = transaction
        self._settings = transaction.settings
        self._book = transaction.book
        self._urls = Urls(transaction)
        self._claims = claims
        self._keys = [claim.address.key for claim in claims]
        self._hids = [int.from_bytes(key[:HOST_BYTES], "big") for key in self._keys]
        self._known: dict[bytes, int] = {}
        self._new: dict[bytes, int] = {}
        """Keys nobody had claimed when we looked: where in the batch they stand first."""
        self._open: set[int] = set()
        """Places in the batch of repeats that may change something."""
        self._unknown: list[int] = []
        """Places of keys that were not known when we looked."""
        self._seeds: list[int] = []
        """Places of what is claimed as a seed's."""
        self._questions: dict[str, Asked] = {}
        """Asked behind the order to hold the hosts."""
        self._refused: dict[bytes, Reason] = {}
        self.hosts: set[int] = set()
        """Hosts that must be held."""
        self.names: dict[int, str] = {}
        """Names of those that may have to be made."""
        self._strangers = Strangers(set(), set())

    def turned_away(self) -> dict[bytes, Reason]:
        """Why new keys of the batch are refused, by the claim's word or by ours; once it has run."""
        return self._refused

    async def look(self) -> None:
        """Find out what there is to do."""
        if not self._claims:
            return
        each = self._transaction.shards.each
        looked = await self._transaction.ask(
            _SQL["look"],
            undone=_UNDONE,
            shard=numbers(each(self._hids)),
            fp=keys(self._keys),
            hid=numbers(self._hids),
            depth=numbers([claim.depth for claim in self._claims]),
            **{"class": numbers([claim.front_class for claim in self._claims])},
        )
        self._seeds = [place for place, claim in enumerate(self._claims) if claim.seed_host]
        seeds = sorted({self._hids[place] for place in self._seeds})
        if seeds:
            no_seeds = await self._transaction.rows(_SQL["no_seeds"], shard=numbers(each(seeds)), hid=numbers(seeds))
            self.hosts.update(hid for (hid,) in no_seeds)
        for place, number, changes_nothing in await looked.fetchall():
            claim = self._claims[place - 1]
            self._known[self._keys[place - 1]] = number
            if claim.refusal is None and not (changes_nothing and claim.lifts is None and claim.modified is None):
                self._open.add(place - 1)
                self.hosts.add(self._hids[place - 1])
        self._find_new()
        await self._turn_away()

    def _find_new(self) -> None:
        self._unknown = [place for place, key in enumerate(self._keys) if key not in self._known]
        for place in self._unknown:
            hid = self._hids[place]
            self._new.setdefault(self._keys[place], place)
            self.hosts.add(hid)
            self.names.setdefault(hid, self._claims[place].address.host)

    async def _turn_away(self) -> None:
        """Leave out the URLs of hosts that are not to be known."""
        if self._settings.hosts_per_domain is None:
            return
        wanted = dict(self.names)
        for claim, hid in zip(self._claims, self._hids, strict=True):
            if claim.seed_host or claim.refusal is not None:
                wanted.pop(hid, None)
        self._strangers = await strangers(self._transaction, wanted)
        away = self._strangers.away
        self.hosts -= away
        for hid in away:
            del self.names[hid]
        self._new = {key: place for key, place in self._new.items() if self._hids[place] not in away}

    async def ask(self) -> None:
        """Ask for what is to be known once the hosts are held; given to `hold`, whose order it follows.

        Others may have claimed between our look and our hold: what they claimed, we repeat.
        """
        if not self.hosts:
            return
        ask, shards, hids = self._transaction.ask, self._transaction.shards, sorted(self.hosts)
        if self._new:
            new = list(self._new)
            self._questions["known"] = await ask(_SQL["known"], shard=numbers(shards.of_keys(new)), fp=keys(new))
        self._questions["refusals"] = await ask(_SQL["refusals"], shard=numbers(shards.each(hids)), hid=numbers(hids))

    async def run(self, held: Mapping[int, HeldHost]) -> list[Claimed]:
        """Judge and write the batch; one answer each, in order."""
        away = self._strangers.away
        if away:
            beyond = sum(hid in away for hid in self._hids)
            self._book.add(REFUSED_BEYOND_CAP, beyond)
            await count_only(self._transaction, beyond)
        if not self.hosts:
            return [Claimed.OVER_BUDGET if hid in away else Claimed.KNOWN for hid in self._hids]
        await self._look_again()
        judging = await self._judging(held)
        # Most links change nothing.
        answers = [Claimed.KNOWN] * len(self._claims)
        for place in sorted(self._open.union(self._unknown, self._seeds)):
            answers[place] = self._one(judging, place)
        self._refused = judging.turned_away()
        await judging.write()
        return answers

    async def _look_again(self) -> None:
        """See what others have claimed meanwhile."""
        new = list(self._new)
        taken = {new[place - 1]: number for place, number in await self._answers("known")}
        if taken:
            self._known |= taken
            self._open.update(
                place for place in self._unknown if self._keys[place] in taken and self._claims[place].refusal is None
            )

    async def _answers(self, question: str) -> list[Row]:
        asked = self._questions.get(question)
        return [] if asked is None else await asked.fetchall()

    async def _judging(self, held: Mapping[int, HeldHost]) -> Judging:
        repeated = {Named(self._hids[place], self._known[self._keys[place]]) for place in self._open}
        places = await self._urls.waiting(repeated)
        ended = await self._urls.ended([url for url in repeated if url.number not in places])
        refusals = {
            (hid, reason): Refusals(kept, beyond) for hid, reason, kept, beyond in await self._answers("refusals")
        }
        hosts = {
            hid: Host(
                seed=host.seed,
                met=host.met,
                waiting=host.n_queued + host.n_delayed,
                blocked=host.blocked,
                crowded=host.crowded,
                name=host.name,
                is_stranger=hid in self._strangers.welcome,
            )
            for hid, host in held.items()
            if hid in self.hosts
        }
        domains = await hold_domains(self._transaction, [host.name for host in hosts.values() if not host.met])
        return Judging(self._transaction, Found(hosts, places, ended), Limits(refusals, domains))

    def _one(self, judging: Judging, place: int) -> Claimed:
        claim, hid = self._claims[place], self._hids[place]
        if hid in self._strangers.away:
            return Claimed.OVER_BUDGET
        if claim.seed_host:
            judging.see_seed(hid)
        number = self._known.get(self._keys[place])
        if number is None:
            return judging.first(claim, hid)
        if place in self._open:
            judging.repeat(claim, hid, number)
        return Claimed.KNOWN


async def claim(transaction: Transaction, claims: Sequence[Claim]) -> list[Claimed]:
    """Claim a batch that comes alone."""
    claims = await Contents(transaction).trodden(claims)
    claiming = Claiming(transaction, claims)
    await claiming.look()
    return await claiming.run(await hold(transaction, claiming.hosts, claiming.names, claiming.ask))
