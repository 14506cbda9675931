"""The event loop that crawls run on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Returned = TypeVar("Returned")


def run_loop(main: Callable[[], Coroutine[Any, Any, Returned]]) -> Returned:
    """Run a coroutine function on the fastest loop there is."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main())
    return uvloop.run(main())
