"""Functions of the user's around each request: a fetcher around the fetcher.

Before a request they may change how it is asked, never what: the URL is the crawl's, whose pace, robots and scope it
has passed. After it they see the answer. What they raise is told once and stops nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from crawlspace import events
from crawlspace.exchange import FetchRequest, FetchResult
from crawlspace.ports import Fetcher

BeforeRequest = Callable[[FetchRequest], FetchRequest | None]
AfterResponse = Callable[[FetchResult], None]


@dataclass(slots=True)
class Hooks:
    """What is called, in the order in which it was asked for."""

    before: list[BeforeRequest] = field(default_factory=list)
    after: list[AfterResponse] = field(default_factory=list)
    refused: bool = False
    """Whether somebody wants to hear of each link that is refused where it is found."""

    def __bool__(self) -> bool:
        return bool(self.before or self.after)


class HookedFetcher:
    """A fetcher whose requests and answers the user's functions see."""

    def __init__(self, fetcher: Fetcher, hooks: Hooks, watch: events.Watcher) -> None:
        self._fetcher = fetcher
        self._hooks = hooks
        self._watch = watch
        self._told: set[object] = set()

    async def fetch(self, request: FetchRequest) -> FetchResult:
        """See `ports.Fetcher`."""
        for hook in self._hooks.before:
            request = self._changed(hook, request)
        result = await self._fetcher.fetch(request)
        for after in self._hooks.after:
            try:
                after(result)
            except Exception as error:  # the user's code stops nothing
                self._tell(after, error)
        return result

    async def close(self) -> None:
        """See `ports.Fetcher`."""
        await self._fetcher.close()

    def _changed(self, hook: BeforeRequest, request: FetchRequest) -> FetchRequest:
        try:
            changed = hook(request) or request
            if changed.url != request.url:
                raise ValueError(f"a hook may not change the URL of a request: {request.url}")
        except Exception as error:  # the user's code stops nothing
            self._tell(hook, error)
            return request
        return changed

    def _tell(self, hook: Callable[..., object], error: Exception) -> None:
        if hook not in self._told:
            self._told.add(hook)
            name = getattr(hook, "__name__", "a hook")
            self._watch(events.Warned(f"{name} raised {type(error).__name__}: {error}; it is not told again"))
