"""The machine, the sites and the versions that results belong to."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench import server, sites
from bench.results import Circumstances
from bench.sites import Site

_LIBRARIES = ("httptools", "selectolax", "can_ada", "isal", "uvloop")
_PEERS = ("scrapy", "twisted", "lxml", "crawlee", "impit", "aiohttp")
_VERSIONS = "import sys, importlib.metadata as m\nfor name in sys.argv[1:]: print(m.version(name))"


def circumstances(chosen: Sequence[Site], peers_python: str) -> Circumstances:
    """All that is needed to read the figures later."""
    versions = {
        "python": platform.python_version(),
        "nginx": _first_line([server.program(), "-v"]).rpartition("/")[2],
    }
    versions |= _versions(sys.executable, _LIBRARIES) | _versions(peers_python, _PEERS)
    versions["wget"] = _first_line(["wget", "--version"]).removeprefix("GNU Wget ").partition(" ")[0]
    return Circumstances(
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        machine=f"{os.cpu_count()} cores, {_processor()}, {_memory_gib():.0f} GiB, {platform.system()}",
        sites={site.name: f"{site.package} {_package(site)}, content {sites.fingerprint(site)}" for site in chosen},
        versions=versions,
    )


def text(found: Circumstances) -> str:
    """The same in words."""
    lines = [f"{found.date}; {found.machine}"]
    lines += [f"{name}: {about}" for name, about in found.sites.items()]
    lines.append(", ".join(f"{name} {version}" for name, version in found.versions.items() if version))
    return "\n".join(lines)


def _versions(python: str, names: Sequence[str]) -> dict[str, str]:
    """Of the packages that `python` has; none when one of them is not there."""
    lines = _output([python, "-c", _VERSIONS, *names]).split()
    return dict(zip(names, lines, strict=False))


def _package(site: Site) -> str:
    return _output(["dpkg-query", "-W", "-f", "${Version}", site.package]) or "of unknown version"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def _first_line(command: Sequence[str]) -> str:
    return _output(command).partition("\n")[0]


def _output(command: Sequence[str]) -> str:
    """What it prints, on either channel; empty when it is not there or fails."""
    try:
        done = subprocess.run(list(command), capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return ""
    return (done.stdout or done.stderr).strip()
