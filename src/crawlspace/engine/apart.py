"""Work on hostile bytes in a process of its own, within limits of time, memory and output.

The process gets next to nothing of the environment, which may hold logins, and gives back bytes that others must
check. However it ends, that is told as a value.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

SECONDS = 20.0
MEMORY = 2 << 30
"""Bytes of address space, most of which is the interpreter's and its libraries' own."""
OUT_OF_MEMORY = 3
"""Exit code of a process that tells so itself."""
FAILED = 4
"""Exit code of a process that could not do it, whatever the reason."""
AT_ONCE = 2
"""Processes of one kind at the same time."""

_SILENT = 255
"""What a process is taken to have ended with that ended well and without an answer."""
_LENGTH = 8
"""Bytes in front of a piece of work that say how long it is."""
_ANSWER = 2
"""Bytes of an exit code."""
_KEPT = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "LANG")


class Came(NamedTuple):
    """What came of it."""

    problem: str | None
    """Why nothing did, in words that begin with `it`."""
    output: bytes = b""


@dataclass(slots=True)
class Apart:
    """One kind of work. What it is given stands on the process's standard input."""

    command: Sequence[str]
    seconds: float = SECONDS
    output: int = 0
    """Bytes that it may give back."""
    _room: asyncio.Semaphore | None = None

    async def run(self, given: bytes) -> Came:
        """Do it once; waits while others of the kind are under way."""
        self._room = self._room or asyncio.Semaphore(AT_ONCE)
        async with self._room:
            return await self._run(given)

    async def _run(self, given: bytes) -> Came:
        pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        process = await _started(self.command, pipe if self.output else nothing)
        try:
            async with asyncio.timeout(self.seconds):
                output = await self._talk(process, given)
        except TimeoutError:
            return Came(f"it took longer than {self.seconds:g} s")
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if len(output) > self.output:
            return Came("it gives more than it may")
        problem = _told(process.returncode)
        return Came(problem, b"" if problem else output)

    async def _talk(self, process: asyncio.subprocess.Process, given: bytes) -> bytes:
        """Give the process its work and take what it says, no more than is wanted of it."""
        if process.stdout is None:
            await process.communicate(given)
            return b""
        writing = asyncio.create_task(_give(process, given))
        try:
            output = b""
            while len(output) <= self.output and (piece := await process.stdout.read(65_536)):
                output += piece
            if len(output) <= self.output:
                await process.wait()
            return output
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)


class Forking:
    """One kind of work without output, each piece in a process of its own that is forked when it is wanted.

    What they are forked from has its libraries loaded: starting an interpreter for each would cost a hundred times
    as much. It answers for its pieces by their exit codes, and is started again when it ends or takes too long.
    """

    def __init__(self, command: Sequence[str], seconds: float = SECONDS) -> None:
        self._command = command
        self._seconds = seconds
        self._room: asyncio.Semaphore | None = None
        self._idle: list[asyncio.subprocess.Process] = []

    async def run(self, given: bytes) -> Came:
        """Do it once; waits while others of the kind are under way."""
        self._room = self._room or asyncio.Semaphore(AT_ONCE)
        async with self._room:
            return await self._run(given)

    async def _run(self, given: bytes) -> Came:
        process = self._idle.pop() if self._idle else await _started(self._command, asyncio.subprocess.PIPE)
        code = None
        try:
            async with asyncio.timeout(self._seconds):
                code = await _asked(process, given)
                ended = code if code is not None else await process.wait() or _SILENT
        except TimeoutError:
            return Came(f"it took longer than {self._seconds:g} s")
        finally:
            if code is not None:
                self._idle.append(process)
            else:
                await _end(process)
        return Came(_told(ended))

    async def close(self) -> None:
        """End what is kept for the next piece."""
        while self._idle:
            await _end(self._idle.pop())


def serve(work: Callable[[bytes], int]) -> None:
    """The other side of `Forking`: do each piece in a process of its own, until no more come."""
    pieces, answers = sys.stdin.buffer, sys.stdout.buffer
    while len(head := pieces.read(_LENGTH)) == _LENGTH:
        given = pieces.read(int.from_bytes(head, "big"))
        forked = os.fork()
        if forked == 0:
            # It cannot answer for itself: what it becomes may be somebody else's.
            nothing = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(nothing, number)
            os._exit(work(given))
        _, status = os.waitpid(forked, 0)
        answers.write(os.waitstatus_to_exitcode(status).to_bytes(_ANSWER, "big", signed=True))
        answers.flush()


async def _started(command: Sequence[str], output: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=output,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: os.environ[name] for name in _KEPT if name in os.environ},
        start_new_session=True,
    )


async def _asked(process: asyncio.subprocess.Process, given: bytes) -> int | None:
    """The exit code of a piece of work; None when the process gave no answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(len(given).to_bytes(_LENGTH, "big") + given)
        await process.stdin.drain()
    try:
        return int.from_bytes(await process.stdout.readexactly(_ANSWER), "big", signed=True)
    except asyncio.IncompleteReadError:
        return None


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill it with all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def _give(process: asyncio.subprocess.Process, given: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(given)
        await process.stdin.drain()
        process.stdin.close()


def _told(code: int | None) -> str | None:
    if code == 0:
        return None
    if code == OUT_OF_MEMORY:
        return "it needs more memory than it may have"
    if code == FAILED:
        return "it fails"
    if code is not None and code < 0:
        return f"it ends a process by {_name(-code)}"
    return f"it ends a process with exit code {code}"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def limit(seconds: float, memory: int) -> None:
    """Bind this process: it computes no longer, takes no more memory, and writes no file."""
    import resource

    whole = max(1, round(seconds))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (whole, whole))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
