"""What a URL has to tell, made of its row: the same for all stores."""

from __future__ import annotations

from crawlspace.frontier.rows import Ending, Waiting, evidence, history, relation, routes
from crawlspace.states import TERMINAL, UrlState
from crawlspace.types import Story


def told(
    row: Waiting, end: Ending, names: tuple[str | None, str], copy_of: str | None = None, file: str | None = None
) -> Story:
    """The story of a URL; `names` are the address of its parent and its host. `due` is its place's to tell."""
    parent, host = names
    waits = end.state not in TERMINAL
    return Story(
        id=row.id,
        url=row.url,
        host=host,
        state=UrlState(end.state),
        front_class=row.front_class if waits else None,
        depth=row.depth,
        hops=row.hops,
        attempts=row.attempts,
        parent=parent,
        relation=relation(row.relation),
        found_at=row.found_at,
        settled_at=None if waits else end.at,
        evidence=evidence(end, file),
        reason=end.reason,
        detail=end.detail or "",
        target=end.target,
        copy_of=copy_of,
        label=row.label,
        meta=row.meta,
        history=() if row.history is None else history(row.history),
        generation=row.generation,
        routes=routes(row.route),
        next_visit=end.next_visit,
        interval_ms=end.interval_ms,
        changed=None if end.changed is None else bool(end.changed),
    )
