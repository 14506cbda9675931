"""What a person does with learned rules: look at them, accept or reject them, write them as settings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import blake2b
from pathlib import Path

import msgspec
import tomli_w

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.store import open_beside
from crawlspace.clock import Clock
from crawlspace.errors import ConfigError, CrawlDirError, UsageError
from crawlspace.policy.evidence import KnownRule, Lesson, RuleState
from crawlspace.settings import Settings, load
from crawlspace.urls import IdentitySettings
from crawlspace.urls.learned import with_rules
from crawlspace.urls.variants import HostRule

NAME_DIGITS = 8

EXPORTED = frozenset({RuleState.PROPOSED, RuleState.ACCEPTED, RuleState.APPLIED})
"""States of rules that are written as settings unless some are named."""


def name_of(rule: HostRule) -> str:
    """A short name for a rule, the same in every crawl."""
    return blake2b("\n".join(rule).encode(), digest_size=NAME_DIGITS // 2).hexdigest()


def chosen(known: Sequence[KnownRule], names: Collection[str]) -> list[KnownRule]:
    """The rules with these names; raises `UsageError` for a name that none has."""
    by_name = {name_of(each.rule): each for each in known}
    for name in names:
        if name not in by_name:
            raise UsageError(f"no learned rule is called {name!r}", hint="`rules learned DIR --all` lists them")
    return [by_name[name] for name in names]


async def decide(
    directory: CrawlDirectory, settings: Settings, clock: Clock, word: tuple[Collection[str], RuleState]
) -> list[KnownRule]:
    """Put the rules with these names into a state, also while the crawl runs; the rules as they were.

    Raises `UsageError` for a name that no rule has.
    """
    names, state = word
    store = await open_beside(directory, settings.frontier(), clock)
    try:
        meant = chosen(await store.learned(), names)
        await store.learn(
            [
                Lesson(each.rule, was=each.state, state=state)
                for each in meant
                if not (state is RuleState.ACCEPTED and each.state is RuleState.APPLIED)
            ]
        )
    finally:
        await store.close()
    return meant


def as_settings(rules: Sequence[HostRule]) -> str:
    """The rules as lines of a settings file."""
    entries = map(msgspec.structs.asdict, with_rules(IdentitySettings(), rules).hosts)
    tables = [
        {"host": entry.pop("host"), **{name: value for name, value in entry.items() if value is not None}}
        for entry in entries
    ]
    return tomli_w.dumps({"identity": {"hosts": tables}}) if tables else ""


def export(rules: Sequence[HostRule], file: Path) -> None:
    """Put the rules behind what a settings file holds; one that is not there is made.

    Raises `ConfigError`, and leaves the file as it is, where it could not be read any more.
    """
    before = file.read_text("utf-8") if file.exists() else ""
    lines = as_settings(rules)
    # TOML has no second opening of a table; its arrays can be gone on with anywhere.
    lines = "\n".join(line for line in lines.splitlines() if line != "[identity]")
    new = file.with_name(f"{file.name}.new")
    try:
        new.write_text(f"{before}{'' if before.endswith(chr(10)) or not before else chr(10)}{lines}\n", "utf-8")
        try:
            load(new, {})
        except ConfigError as error:
            raise ConfigError(
                f"the rules cannot be put behind what {file} holds: {error.message}",
                hint="print them with --export - and put them in by hand",
            ) from None
        new.replace(file)
    except OSError as error:
        raise CrawlDirError(f"{file} cannot be written: {error.strerror}") from error
    finally:
        new.unlink(missing_ok=True)
