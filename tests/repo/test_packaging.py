"""What the package says of itself, and what it is built and tested with."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import crawlspace

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PIN = re.compile(r"^([a-z0-9-]+)==(\S+)", re.MULTILINE)


def name_of(requirement: str) -> str:
    """The normalised name at the front of a requirement."""
    return re.split(r"[\s<>=!~;\[]", requirement, maxsplit=1)[0].lower().replace("_", "-").replace(".", "-")


def names_of(requirements: list[str]) -> set[str]:
    return {name_of(requirement) for requirement in requirements} - {"crawlspace"}


def pins(lock: str) -> dict[str, str]:
    return dict(PIN.findall((ROOT / "requirements" / lock).read_text(encoding="utf-8")))


def test_every_dependency_has_its_paragraph_and_no_paragraph_is_left_over() -> None:
    text = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    written = {name_of(title) for title in re.findall(r"^### (.+)$", text, re.MULTILINE)}
    listed = names_of(PROJECT["dependencies"]).union(*(names_of(extra) for extra in EXTRAS.values()))
    assert written == listed


@pytest.mark.parametrize(("lock", "extras"), [("base.txt", ["testing"]), ("dev.txt", ["testing", "dev"])])
def test_a_lock_pins_every_dependency_it_is_made_for(lock: str, extras: list[str]) -> None:
    wanted = names_of(PROJECT["dependencies"]).union(*(names_of(EXTRAS[extra]) for extra in extras))
    assert wanted <= set(pins(lock))


def test_a_wider_lock_repeats_the_versions_of_the_narrower_one() -> None:
    """They are installed over each other in one environment."""
    assert pins("base.txt").items() <= pins("dev.txt").items()


def test_the_peers_of_the_benchmark_are_pinned_apart() -> None:
    lines = (ROOT / "requirements" / "peers.in").read_text(encoding="utf-8").splitlines()
    wanted = names_of([line for line in lines if not line.startswith("#")])
    assert {"aiohttp", "crawlee", "scrapy"} <= wanted <= set(pins("peers.txt"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_has_hashes_for_every_package_and_no_address(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    entries = re.split(r"\n(?=[a-z])", "\n" + text)[1:]
    assert entries
    assert not [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry]
    assert "://" not in text
    assert "--index" not in text


def test_the_version_is_the_changelogs_or_one_that_is_not_out_yet() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(.+?)\]", text, re.MULTILINE)
    assert versions[0] == "Unreleased"
    assert len(versions) == 1 or versions[1] == crawlspace.__version__


def test_the_licence_is_apache_2() -> None:
    assert PROJECT["license"] == "Apache-2.0"
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
