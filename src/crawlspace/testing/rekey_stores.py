"""Stores with everything in them that re-keying must carry over, made by chance from a seed."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from typing import Any

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.rules import RULES, RULES_TEXT
from crawlspace.app.store import Store
from crawlspace.policy.scope import Scope
from crawlspace.settings import Settings, as_toml, convert, nested
from crawlspace.types import (
    Address,
    Claim,
    Died,
    Evidence,
    Fingerprints,
    Finished,
    Lease,
    Moved,
    Pace,
    Pointer,
    ProcessingFailed,
    QueuedUrl,
    Reason,
    Refused,
    Relation,
    Released,
    RequestSpec,
    RetryAt,
    Settlement,
    WasRedirect,
    Wish,
)
from crawlspace.urls import Identity, policy_from

T0 = 1_700_000_000_000
HASH_KEY = "5a" * 32
BATCH = 1000
HOST_FORMS = ("http://{h}", "https://{h}", "http://www.{h}", "https://www.{h}", "http://{h}:8080")
PATH_FORMS = (
    "/p{n}",
    "/p{n}/",
    "/p{n}/index.html",
    "//p{n}",
    "/p{n}?ref=a",
    "/P{n}",
    "/p{n}?a=1&b=2",
    "/p{n}?b=2&a=1",
)
FAMILY = 6
"""URLs drawn for each page: some are spelled alike under some rules, some are drawn twice."""


def settings_with(**identity: Any) -> Settings:
    """Settings that differ in these rules; a small cap lets refusals run over."""
    values = {"store.refusals_kept": 7, "budget.pages_per_host": 60, "scope.strategy": "any"}
    return convert(nested(values | {f"identity.{name}": value for name, value in identity.items()}), "test")


@dataclass
class Builder:
    """Fills one store by chance."""

    frontier: Store
    identity: Identity
    chance: random.Random
    hosts: int

    def url(self, page: int) -> str:
        host = f"s{page % self.hosts}.test"
        forms = self.chance.choice(HOST_FORMS), self.chance.choice(PATH_FORMS)
        return "".join(forms).format(h=host, n=page)

    def claim(self, page: int) -> Claim:
        chance = self.chance
        request = RequestSpec("POST", b"x=1", "text/plain") if chance.random() < 0.01 else None
        address = self.identity.identify(self.url(page), request=request)
        assert isinstance(address, Address)
        return Claim(
            address=address,
            depth=chance.randrange(6),
            front_class=chance.randrange(3, 8),
            parent=chance.randrange(1, page + 2) if page else None,
            relation=chance.choice([Relation.HYPERLINK, Relation.FRAME]),
            label="l" if chance.random() < 0.1 else None,
            request=request,
            refusal=chance.choice([Reason.DEPTH, Reason.EXCLUDED]) if chance.random() < 0.1 else None,
            seed_host=address.host.endswith("s1.test"),
        )

    async def fill(self, urls: int) -> None:
        """Claim them, spend leases on half, and leave some leases open."""
        made = 0
        page = 0
        batch: list[Claim] = []
        while made < urls:
            batch += [self.claim(page) for _ in range(FAMILY)]
            page += 1
            if len(batch) >= BATCH:
                await self.frontier.claim(batch, T0)
                batch = []
                made = (await self.frontier.counts()).known
        await self.spend(urls // 2)
        await self.frontier.lease(Wish(1, 3, 5, 60_000, 1_000_000), T0 + 10_000_000)

    async def spend(self, goal: int) -> None:
        now = T0
        while (await self.frontier.counts()).fetches < goal:
            now += 1000
            leases = await self.frontier.lease(Wish(1, 50, 20, 60_000, 1_000_000), now)
            if not leases:
                return
            for lease in leases:
                settlements: list[Settlement] = [self.settlement(lease, url, now) for url in lease.urls]
                await self.frontier.settle([*settlements, self.release(lease, now)], [], now)

    def release(self, lease: Lease, now: int) -> Released:
        pace = Pace(now + self.chance.randrange(900), self.chance.choice([200, 500, 1000]), None, 0, 0)
        return Released(lease.token, lease.host.hid, pace, "connect" if lease.host.name == "s3.test" else None)

    def settlement(self, lease: Lease, url: QueuedUrl, now: int) -> Settlement:
        chance, where = self.chance, (lease.token, lease.host.hid, url)
        kind = chance.random()
        if kind < 0.5:
            return Finished(*where, self.evidence(url, now, 200))
        if kind < 0.6:
            return Died(*where, self.evidence(url, now, 404, "http_404"))
        if kind < 0.7:
            page = (
                chance.randrange(50)
                if chance.random() < 0.5
                else int("".join(filter(str.isdigit, url.url[-3:])) or 0)
            )
            return WasRedirect(*where, self.evidence(url, now, 301), self.url(page))
        if kind < 0.8:
            return RetryAt(*where, self.evidence(url, now, 503, "http_503"), now + 10**9 + chance.randrange(10**7))
        if kind < 0.87:
            return Refused(*where, Reason.ROBOTS)
        if kind < 0.93:
            return ProcessingFailed(*where, self.evidence(url, now, 200, "processing"))
        moved = f"{url.url}&utm_source=x" if "?" in url.url else f"{url.url}?utm_source=x"
        return Moved(*where, self.evidence(url, now, 301), moved)

    def evidence(self, url: QueuedUrl, now: int, status: int, error: str | None = None) -> Evidence:
        """Pages of one number have one content, most of the time."""
        number = "".join(filter(str.isdigit, url.url.rpartition("test")[2]))
        body = number if self.chance.random() < 0.8 else url.url
        digest = hashlib.sha256(body.encode()).digest()
        pointer = Pointer("a.warc.gz", self.chance.randrange(10**6), 100)
        seen = Fingerprints(digest, digest, 500, simhash=int.from_bytes(digest[:8], "big"), shape=f"/{len(number)}")
        return Evidence(now, status, error, "", pointer, digest, "text/html", 500, 20, fingerprints=seen)


async def fill(place: CrawlDirectory, frontier: Store, settings: Settings, kind: tuple[int, int]) -> None:
    """Make it a crawl of so many URLs, by this seed, as a killed one leaves it: some leases are still open."""
    urls, seed = kind
    policy = policy_from(settings.identity)
    identity = Identity(policy, bytes.fromhex(HASH_KEY))
    seeds = [identity.identify(f"http://{name}.test/") for name in ("s1", "www.s1")]
    scope = Scope.of(settings.scope, [each for each in seeds if isinstance(each, Address)])
    facts = {"hash_key": HASH_KEY, RULES: policy.identifier, RULES_TEXT: policy.text, "scope": scope.roots}
    await frontier.note(facts)
    await Builder(frontier, identity, random.Random(seed), max(5, urls // 200)).fill(urls)
    place.write_effective(settings)
    place.write_config(as_toml(settings))
