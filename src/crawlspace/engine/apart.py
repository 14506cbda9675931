"""Work on hostile bytes in a process of its own, within limits of time, memory and output.

The process gets next to nothing of the environment, which may hold logins, and gives back bytes that others must
check. However it ends, that is told as a value.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
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
        process = await asyncio.create_subprocess_exec(
            *self.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE if self.output else asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env={name: os.environ[name] for name in _KEPT if name in os.environ},
            start_new_session=True,
        )
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
