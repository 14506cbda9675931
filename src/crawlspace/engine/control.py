"""Carrying out what a person asks of a crawl, while it runs or before it ends.

Commands come from the store, where verbs write them. Each pass takes every open command one bounded step further, in
the order in which they were asked, so that a long one holds up neither the crawl nor the others. How far a command is
is written in the transaction that takes it there: after a crash it goes on, and what it repeats changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from crawlspace import events
from crawlspace.clock import Clock
from crawlspace.engine.intake import SCOPE, Intake, Request
from crawlspace.engine.sweeps import Review, Tally, review_of
from crawlspace.errors import DiskFull, StoreDamaged, UsageError
from crawlspace.policy.commands import (
    Asked,
    Block,
    Command,
    Heed,
    Hold,
    Ignore,
    Inject,
    Pause,
    Resume,
    Seed,
    decode,
)
from crawlspace.policy.review import Ruling
from crawlspace.ports import Control, Ledger
from crawlspace.types import Unusable, host_id

POLL_SECONDS = 0.5
SPACE_CHECK_SECONDS = 5.0
OPEN_AT_ONCE = 50
"""Commands that one pass takes a step further."""
BATCH = 500
"""URLs that one step looks at."""
IGNORED = "ignored"
"""The fact that holds the patterns which are ignored."""
MOST_IGNORED = 1000
HOLDS: dict[type[Command], Hold] = {Pause: Hold.PAUSED, Block: Hold.BLOCKED}

Injector = Callable[[Sequence[Request]], Awaitable[Mapping[str, object]]]
"""Adds seeds and says what became of them."""


class Progress(msgspec.Struct):
    """How far a command is; its answer, once it is done."""

    shelf: int = 0
    after: tuple[int | str, ...] = ()
    tally: Tally = {}
    error: str | None = None
    answer: dict[str, object] = {}


def read_progress(asked: Asked) -> Progress:
    """How far a command is; raises `StoreDamaged` when that cannot be read."""
    if not asked.progress:
        return Progress()
    try:
        return msgspec.json.decode(asked.progress, type=Progress)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise StoreDamaged(f"the progress of command {asked.number} cannot be read: {error}") from error


def read_ignored(notes: Mapping[str, str]) -> tuple[str, ...]:
    """The patterns that a crawl with these facts ignores; raises `StoreDamaged`."""
    try:
        return msgspec.json.decode(notes.get(IGNORED, "[]"), type=tuple[str, ...])
    except (msgspec.DecodeError, UnicodeError) as error:
        raise StoreDamaged(f"the ignored patterns cannot be read: {error}") from error


@dataclass(slots=True)
class Controller:
    """One for each owner of a crawl."""

    control: Control
    ledger: Ledger
    intake: Intake
    inject: Injector
    clock: Clock
    watch: events.Watcher
    held: set[str] = field(default_factory=set)
    """Names of hosts that were paused or blocked in this run: their visits end at once."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after each step: the frontier may have something new to lease."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _tallies: dict[int, Tally] = field(default_factory=dict)
    _edition: int = -1

    async def run(self) -> None:
        """Look for commands and carry them out, until cancelled."""
        while True:
            try:
                waits = 0.0 if await self.step() else POLL_SECONDS
            except DiskFull:
                # Who fetches says so, and waits too; what was asked stays written down.
                waits = SPACE_CHECK_SECONDS
            await self.clock.sleep(waits)

    async def finish(self, stopping: Callable[[], bool] = lambda: False) -> bool:
        """Carry out all that is open; whether there was anything."""
        any_open = False
        while not stopping() and await self.step():
            any_open = True
        return any_open

    async def step(self) -> bool:
        """Take each open command one step further; whether there was one."""
        async with self._lock:
            await self.tell_alarms()
            await self.hear()
            commands = await self.control.asked(OPEN_AT_ONCE)
            for asked in commands:
                await self._further(asked)
            if commands:
                self.changed.set()
            return bool(commands)

    async def hear(self) -> None:
        """Take over what anybody has changed who works on the same crawl: its scope, what it ignores, held hosts."""
        news = await self.control.news(self._edition)
        if news is not None:
            await self.intake.hear(news.facts.get(SCOPE), read_ignored(news.facts))
            self.held.clear()
            self.held.update(news.held)
            self._edition = news.edition

    async def tell_alarms(self) -> None:
        """Mark hosts that look like traps, and say so."""
        alarms, self.intake.alarms = self.intake.alarms, []
        if alarms:
            await self.control.alarm([(alarm.hid, alarm.kind.value) for alarm in alarms])
            for alarm in alarms:
                self.watch(events.TrapSeen(alarm.host, alarm.kind, alarm.example))

    async def _further(self, asked: Asked) -> None:
        progress = Progress()
        try:
            progress, command = read_progress(asked), decode(asked.command)
            await self._one_step(asked, command, progress)
        except (UsageError, StoreDamaged) as error:
            progress.error = str(error)
            await self._done(asked, progress, "a command")

    async def _one_step(self, asked: Asked, command: Command, progress: Progress) -> None:
        if isinstance(command, Inject):
            progress.answer = dict(await self.inject([_request(seed) for seed in command.seeds]))
            await self._done(asked, progress, "inject")
            return
        hid = await self._hold(command) if isinstance(command, Pause | Block | Resume) else 0
        if isinstance(command, Ignore | Heed) and not asked.progress:
            while not await self._ignore(command):
                pass
        tally = self._tallies.setdefault(asked.number, dict(progress.tally))
        review = review_of(command, hid, self.intake, tally)
        if progress.shelf < len(review.shelves):
            await self._look(asked, review, progress, tally)
            return
        self._tallies.pop(asked.number)
        progress.tally = tally
        await self._done(asked, progress, review.name)

    async def _look(self, asked: Asked, review: Review, progress: Progress, tally: Tally) -> None:
        """One batch of a shelf; what it changed is counted when the store has it, and written with the next."""
        shelf = review.shelves[progress.shelf]
        browsed = await self.control.browse(shelf, progress.after or review.begin, BATCH)
        inside = [known for known in browsed.known if not review.is_beyond(known)]
        rulings = [ruling for known in inside if (ruling := review.rule(known)) is not None]
        if browsed.after is None or len(inside) < len(browsed.known):
            reached = Progress(progress.shelf + 1, (), dict(tally))
        else:
            reached = Progress(progress.shelf, browsed.after, dict(tally))
        applied = await self.control.rule(rulings, replace(asked, progress=_text(reached)))
        _count(tally, "looked", len(inside))
        for ruling, did in zip(rulings, applied, strict=True):
            _count(tally, _word(ruling) if did else "left")

    async def _done(self, asked: Asked, progress: Progress, name: str) -> None:
        await self.control.rule([], replace(asked, progress=_text(progress), done=True))
        if progress.error is not None:
            self.watch(events.Warned(f"{name} could not be carried out: {progress.error}"))
        else:
            self.watch(events.CarriedOut(name, {word: n for word, n in progress.tally.items() if n}))

    # -- commands that do more than look --------------------------------------------------------------------

    async def _hold(self, command: Pause | Block | Resume) -> int:
        """Hold or free a host; its number."""
        address = self.intake.identity.identify(f"http://{command.host}/")
        if isinstance(address, Unusable):
            raise UsageError(f"{command.host!r} is no host")
        how = HOLDS.get(type(command))
        hid = host_id(address.key)
        await self.control.hold([(hid, address.host)], how)
        if how is None:
            self.held.discard(address.host)
        else:
            self.held.add(address.host)
        return hid

    async def _ignore(self, command: Ignore | Heed) -> bool:
        """False when somebody else changed what is ignored at the same moment."""
        intake = self.intake
        async with intake.growth:
            facts = await self.ledger.notes()
            ignored = read_ignored(facts)
            patterns = tuple(each for each in ignored if each != command.pattern)
            if isinstance(command, Ignore):
                patterns = (*patterns, command.pattern)
            if len(patterns) > MOST_IGNORED:
                raise UsageError(f"{MOST_IGNORED} patterns are ignored already", hint="write one that fits many")
            scope = intake.scope.ignoring(patterns)
            text = msgspec.json.encode(patterns).decode()
            if not await self.ledger.revise(IGNORED, facts.get(IGNORED), text):
                return False
            intake.scope = scope
            return True


def _request(seed: Seed) -> Request:
    return Request(seed.url, seed.label, seed.meta, seed.method, seed.body, seed.content_type)


def _text(progress: Progress) -> str:
    return msgspec.json.encode(progress).decode()


def _count(tally: Tally, word: str, n: int = 1) -> None:
    tally[word] = tally.get(word, 0) + n


def _word(ruling: Ruling) -> str:
    """What an applied ruling did."""
    if ruling.refusal is not None:
        return "dropped" if ruling.known.shelf == "dead" else "skipped"
    return "reclassed" if ruling.known.shelf in ("queued", "delayed") else "queued"
