"""The settings under which a crawl's URLs were judged: under others, what waits or was refused is judged again.

The judging itself is a command like those of people: done in the background, in bounded steps, and told when done.
"""

from __future__ import annotations

import msgspec

from crawlspace.app.store import Store
from crawlspace.engine.intake import SCOPE
from crawlspace.errors import StoreDamaged
from crawlspace.policy.commands import Rejudge, encode
from crawlspace.settings import Settings

JUDGED = "judged_under"
"""The fact that holds those settings."""
JUDGED_SCOPE = "judged_scope"
"""The fact that holds the scope, as it had grown, under which several processes have judged."""


async def judge_again_if_changed(frontier: Store, settings: Settings) -> None:
    """Ask for a new judgement when scope or a limit of queues and traps is not what it was at the last start."""
    await judge_again_if_grown(frontier)
    now = _those_that_judge(settings)
    kept = (await frontier.notes()).get(JUDGED)
    if kept is not None:
        # What an earlier version did not keep had its default.
        before = _those_that_judge(Settings()) | _read(kept)
        changed = sorted(name for name in now.keys() | before.keys() if now.get(name) != before.get(name))
        if not changed:
            return
        await frontier.ask([encode(Rejudge(f"changed: {', '.join(changed)}"))])
    await frontier.note({JUDGED: msgspec.json.encode(now).decode()})


async def judge_again_if_grown(frontier: Store) -> None:
    """Ask for a new judgement when the scope has grown since several processes began to judge under it.

    Until the others had heard of it, they refused what it now lets in; those that were killed never heard.
    """
    notes = await frontier.notes()
    before, now = notes.get(JUDGED_SCOPE), notes.get(SCOPE, "")
    if before is not None and before != now:
        await frontier.ask([encode(Rejudge("the scope has grown"))])
        await frontier.note({JUDGED_SCOPE: now})


async def several_judge(frontier: Store) -> None:
    """Say that several processes judge from now on, under the scope as it is."""
    notes = await frontier.notes()
    if JUDGED_SCOPE not in notes:
        await frontier.note({JUDGED_SCOPE: notes.get(SCOPE, "")})


def _those_that_judge(settings: Settings) -> dict[str, object]:
    """By their names, as JSON has them."""
    scope = msgspec.to_builtins(settings.scope, builtin_types=())
    judging: dict[str, object] = {f"scope.{name}": value for name, value in scope.items()}
    judging["store.queue_per_host"] = settings.store.queue_per_host
    judging["traps.stop_after"] = settings.traps.stop_after
    plain: dict[str, object] = msgspec.json.decode(msgspec.json.encode(judging))
    return plain


def _read(text: str) -> dict[str, object]:
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeError) as error:
        raise StoreDamaged(f"the fact {JUDGED!r} cannot be read: {error}") from error
