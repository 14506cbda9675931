"""Who parses batches: this process, a pool of processes, or a Ray cluster. The one place that knows Ray."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from typing import Any, Protocol

from crawlspace.app.reparsing.batch import (
    Batch,
    Job,
    alone,
    archive_of,
    crashed,
    parse_batch,
    parse_trusting,
    parse_with,
)
from crawlspace.app.reparsing.selection import Task
from crawlspace.errors import UsageError
from crawlspace.parsers import Parser

BATCH = 64
"""Captures parsed at a time: what a kill may have to do again, and what is made durable together."""
AHEAD = 3
"""Batches that wait for each process."""


class Pool(Protocol):
    """Parses captures; what comes of them comes in any order."""

    def run(self, job: Job, tasks: Iterable[Task]) -> Iterator[Batch]:
        """The batches, as they are done."""
        ...


class Here:
    """This process alone, with a parser that need not be found by its name."""

    def __init__(self, parser: Parser) -> None:
        self._parser = parser

    def run(self, job: Job, tasks: Iterable[Task]) -> Iterator[Batch]:
        archive = archive_of(job)
        for batch in batches(tasks):
            yield parse_with(self._parser, archive, job, batch)


class Processes:
    """A pool of processes on this machine. A capture that takes its process down is told apart and kept as failed."""

    def __init__(self, parser: Parser, count: int) -> None:
        self._parser = parser
        self._count = count

    def run(self, job: Job, tasks: Iterable[Task]) -> Iterator[Batch]:
        waiting = batches(tasks)
        broken: list[list[Task]] = []
        while True:
            yield from self._until_broken(job, waiting, broken)
            if not broken:
                return
            for batch in broken:
                yield from self._again(job, batch)
            broken = []

    def _until_broken(self, job: Job, waiting: Iterator[list[Task]], broken: list[list[Task]]) -> Iterator[Batch]:
        """Batches that are done; when a process dies, those that were under way are put into `broken`."""
        running: dict[Future[Batch], list[Task]] = {}
        with _pool(self._count) as pool:
            while not broken:
                for batch in islice(waiting, self._count * AHEAD - len(running)):
                    running[_submitted(pool, job, batch)] = batch
                if not running:
                    return
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                yield from _done(done, running, broken)

    def _again(self, job: Job, tasks: list[Task]) -> Iterator[Batch]:
        """A batch whose process died: together without trust, and if that fails too one capture after another."""
        found = _together(job, tasks)
        if found is not None:
            yield found
        elif len(tasks) == 1:
            yield Batch([crashed(self._parser, tasks[0])], parsed=1, failed=1)
        else:
            for task in tasks:
                yield from self._again(job, [task])


def _submitted(pool: ProcessPoolExecutor, job: Job, tasks: list[Task]) -> Future[Batch]:
    try:
        return pool.submit(parse_trusting, job, tasks)
    except BrokenProcessPool as error:
        # A process died since anybody looked: the batch is among those that were under way.
        failed: Future[Batch] = Future()
        failed.set_exception(error)
        return failed


def _done(
    done: Iterable[Future[Batch]], running: dict[Future[Batch], list[Task]], broken: list[list[Task]]
) -> Iterator[Batch]:
    for future in done:
        batch = running.pop(future)
        if isinstance(future.exception(), BrokenProcessPool):
            broken += [batch, *running.values()]
            return
        yield future.result()


def _together(job: Job, tasks: list[Task]) -> Batch | None:
    """What comes of tasks in a process of their own; None when that dies."""
    with _pool(1) as pool:
        try:
            return pool.submit(parse_batch, job, tasks).result()
        except BrokenProcessPool:
            return None


class Ray:
    """A Ray cluster whose machines all see the crawl directory under the same path."""

    def __init__(self, address: str | None, count: int) -> None:
        """`address` of a running cluster; None: one on this machine, for this call. Raises `UsageError`."""
        self._ray = _ray()
        self._address = address
        self._count = count

    def run(self, job: Job, tasks: Iterable[Task]) -> Iterator[Batch]:
        ray = self._ray
        options: dict[str, Any] = {"address": self._address} if self._address else {"num_cpus": self._count}
        ray.init(log_to_driver=False, include_dashboard=False, ignore_reinit_error=True, **options)
        try:
            parse = ray.remote(max_retries=3)(parse_batch)
            shared = ray.put(job)
            running: deque[Any] = deque()
            waiting = batches(tasks)
            while True:
                room = int(ray.cluster_resources().get("CPU", 1)) * AHEAD - len(running)
                running += [parse.remote(shared, batch) for batch in islice(waiting, room)]
                if not running:
                    return
                done, left = ray.wait(list(running), num_returns=1)
                running = deque(left)
                yield from ray.get(done)
        finally:
            ray.shutdown()


def pool_of(parser: Parser, count: int, engine: str = "local", address: str | None = None) -> Pool:
    """Who parses: so many processes of this machine, or a Ray cluster; raises `UsageError`."""
    if engine == "ray":
        return Ray(address, count)
    if engine != "local":
        raise UsageError(f"{engine!r} parses nothing", hint="engines are local and ray")
    if address is not None:
        raise UsageError("an address is that of a Ray cluster", hint="the engine is ray then")
    return Processes(parser, count) if count > 1 else Here(parser)


def batches(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    """Tasks in batches, each in the order in which its captures lie in the archive."""
    waiting = iter(tasks)
    while batch := list(islice(waiting, BATCH)):
        yield sorted(batch, key=_place)


def _place(task: Task) -> tuple[str, int]:
    pointer = task.captured.pointer
    return pointer.file, pointer.offset


@contextmanager
def _pool(count: int) -> Iterator[ProcessPoolExecutor]:
    """A pool; whoever leaves it by an exception waits for what runs, not for what waits."""
    # Processes come from one that has only loaded what they need: none has locks, threads or sockets of ours.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["crawlspace.app.reparsing.batch", "crawlspace.parsers.links"])
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=alone)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            "parsing on a cluster needs the extra `ray`", hint="pip install 'crawlspace[ray]'"
        ) from error
    return ray
