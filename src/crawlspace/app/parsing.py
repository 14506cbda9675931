"""Parsers by their names, and where their records go.

A name is that of a parser that comes along, or `module:name`, or `file.py:name` of one that the user wrote; without
`:name` all parsers of the module or file are meant. What is loaded here is the user's own code, named by the user:
in `crawl.toml`, on the command line or from Python.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType

from crawlspace.app.directory import CrawlDirectory
from crawlspace.archive.repair import is_of
from crawlspace.errors import ConfigError, CrawlspaceError, UsageError
from crawlspace.parsers import BUILT_IN, Parser, Router, as_parser
from crawlspace.parsers.settings import ParserSettings
from crawlspace.records import Records, Rules, fold
from crawlspace.records.sink import recover
from crawlspace.settings import Settings
from crawlspace.urls import IdentitySettings, canonicalize_many, policy_from

FOLD_AT = 4 << 20
"""Bytes of journals that are worth a fold when a crawl ends; fewer are read as they are."""


def records_at(directory: CrawlDirectory) -> Path:
    """Where the records of a crawl lie."""
    return directory.path / "records"


def rules_of(identity: IdentitySettings) -> Rules:
    """The URL rules by which records tell pages apart."""
    policy = policy_from(identity)
    return Rules(policy.identifier, lambda urls: canonicalize_many(urls, policy=policy))


def running(settings: ParserSettings, directory: CrawlDirectory, given: Sequence[Parser] = ()) -> list[Parser]:
    """The parsers that run while crawling; raises `UsageError` when one cannot be loaded or two have one name."""
    found = [*given, *(each for name in settings.run for each in load_parsers(name, directory.path))]
    names = [each.name for each in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"two parsers are called {twice[0]!r}", hint="each needs a name of its own")
    return found


def load_parser(name: str, beside: Path) -> Parser:
    """The one parser that a name means; raises `UsageError`."""
    found = load_parsers(name, beside)
    if len(found) != 1:
        raise UsageError(
            f"{name!r} has {len(found)} parsers",
            hint=f"name one of them: {name}:NAME" if found else "decorate a function with @crawlspace.parser",
        )
    return found[0]


def load_parsers(name: str, beside: Path) -> list[Parser]:
    """All parsers that a name means; `beside` is where files are looked for first. Raises `UsageError`."""
    spec = BUILT_IN.get(name, name)
    place, colon, attribute = spec.rpartition(":") if ":" in spec else (spec, "", "")
    module = _module(place, beside, name)
    if colon:
        value = getattr(module, attribute, None)
        if value is None:
            raise UsageError(f"there is no {attribute!r} in {place}", hint="parsers are named as module:name")
        return [as_parser(value)]
    values = [value for value in vars(module).values() if isinstance(value, Parser | Router)]
    return list(dict.fromkeys(as_parser(value) for value in values))


def _module(place: str, beside: Path, name: str) -> ModuleType:
    try:
        if place.endswith(".py"):
            return _file(place, beside)
        return importlib.import_module(place)
    except CrawlspaceError:
        raise
    except ModuleNotFoundError as error:
        known = ", ".join(BUILT_IN)
        raise UsageError(
            f"there is no parser {name!r}: {error}",
            hint=f"there are {known}, and yours as module:name or file.py:name",
        ) from error
    except Exception as error:  # whatever a user's file does when it is loaded
        raise UsageError(f"{place} cannot be loaded: {type(error).__name__}: {error}") from error


def _file(place: str, beside: Path) -> ModuleType:
    paths = [beside / place, Path(place)]
    path = next((each for each in paths if each.is_file()), None)
    if path is None:
        raise UsageError(f"there is no file {place}", hint=f"looked for in {beside} and in {Path.cwd()}")
    called = f"crawlspace_parsers_of_{path.stem}"
    spec = importlib.util.spec_from_file_location(called, path.resolve())
    assert spec is not None, "a name that ends in .py is one of a module"
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[called] = module  # what dataclasses and pickles look for
    spec.loader.exec_module(module)
    return module


# -- where records go ---------------------------------------------------------------------------------------


@asynccontextmanager
async def recorded(
    directory: CrawlDirectory, settings: Settings, parsers: Sequence[Parser]
) -> AsyncIterator[Records | None]:
    """What a crawl writes its records to, when it has parsers; what is full is folded by a process of its own.

    When the crawl ends in peace its journal ends with it, and is folded if that is worth it.
    """
    if not parsers:
        yield None
        return
    records = Records(records_at(directory), ended=lambda: _fold_beside(directory))
    try:
        yield records
        await records.flush()
        records.seal()
    finally:
        await records.close()
    await asyncio.to_thread(fold_records, directory, settings)


def put_records_right(directory: CrawlDirectory, reach: Mapping[str, int], worker: int | None = None) -> int:
    """After a crash take back records of captures that were never settled; those of one worker, or of all."""
    mine: Callable[[str], bool] = lambda file: is_of(worker, file)  # noqa: E731 -- a name for a condition
    return recover(records_at(directory), reach, mine, everything=worker is None)


def fold_records(directory: CrawlDirectory, settings: Settings, *, least: int = FOLD_AT) -> None:
    """Fold what a crawl left in journals, if it is worth it and the extra is there."""
    place = records_at(directory)
    size = sum(path.stat().st_size for path in place.glob("journal-*.jsonl")) if place.is_dir() else 0
    if size >= least and importlib.util.find_spec("pyarrow") and importlib.util.find_spec("duckdb"):
        fold(place, rules_of(settings.identity))


def _fold_beside(directory: CrawlDirectory) -> None:
    """Start a process that folds what is complete; it is waited for by nobody, and begun again if it fails."""
    if importlib.util.find_spec("pyarrow") is None or importlib.util.find_spec("duckdb") is None:
        return
    subprocess.Popen(
        [sys.executable, "-m", "crawlspace.app.folding", str(directory.path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
