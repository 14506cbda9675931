"""What a seen-set costs: bytes for a URL, and CPU for a question, beside a Python set.

    python -m bench.seen [--keys 10000000] [--only NAME ...]

Each contender fills itself in a process of its own with keys made from their numbers, in batches of 1,000; memory
is the growth of that process. Then it is asked about batches of 1,000 of which 80 % are known, as links of a crawl
are, and about single keys. CPU is the process's user and system time within the calls alone. Bytes on disk are
the closed file's. The last line says which machine and versions it was.
"""

from __future__ import annotations

import argparse
import json
import platform
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crawlspace.seen import DiskSeenSet, MemorySeenSet

BATCH = 1000
KNOWN = 800
LINKS_OF_A_PAGE = 40
HOSTS = 20_000
ROUNDS = 200
ALONE = 20_000

Numbers = np.ndarray[Any, np.dtype[np.uint64]]
AddMany = Callable[[list[Any]], Any]
Words = Callable[[Numbers], list[Any]]


@dataclass(frozen=True)
class Figures:
    """What one contender costs; bytes a URL and microseconds a URL."""

    name: str
    urls: int
    memory: float
    peak: float
    disk: float
    fill_us: float
    batch_us: float
    alone_us: float


def mixed(numbers: Numbers, salt: int) -> Numbers:
    """A well spread word for each number (the finaliser of SplitMix64)."""
    word = numbers * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


def hosts_of(numbers: Numbers) -> Numbers:
    """Forty links in a row belong to one host."""
    return mixed(numbers // np.uint64(LINKS_OF_A_PAGE), 1) % np.uint64(HOSTS)


def integers(numbers: Numbers) -> list[int]:
    return mixed(numbers, 2).tolist()


def keys_of_8(numbers: Numbers) -> list[bytes]:
    return cut(mixed(numbers, 2).tobytes(), 8)


def random_keys(numbers: Numbers) -> list[bytes]:
    return cut(np.column_stack([mixed(numbers, 2), mixed(numbers, 3)]).tobytes(), 16)


def crawl_keys(numbers: Numbers) -> list[bytes]:
    """Six bytes of the host first, as a crawl's keys have them."""
    columns = np.column_stack([mixed(numbers, 2), mixed(numbers, 3)]).view(np.uint8)
    columns[:, :6] = mixed(hosts_of(numbers), 4).view(np.uint8).reshape(-1, 8)[:, :6]
    return cut(columns.tobytes(), 16)


def urls(numbers: Numbers) -> list[str]:
    """Addresses of some 60 letters."""
    return [
        f"https://www.host-{host:05}.example/articles/{number:010}/index.html"
        for host, number in zip(hosts_of(numbers).tolist(), numbers.tolist(), strict=True)
    ]


def cut(packed: bytes, size: int) -> list[bytes]:
    return [packed[at : at + size] for at in range(0, len(packed), size)]


class PythonSet:
    """What most crawlers do."""

    def __init__(self) -> None:
        self._known: set[Any] = set()

    def add_if_new(self, key: Any) -> bool:
        known = key in self._known
        self._known.add(key)
        return not known

    def add_many(self, keys: list[Any]) -> list[bool]:
        known, answers = self._known, []
        for key in keys:
            answers.append(key not in known)
            known.add(key)
        return answers


def without_numpy(size: int) -> MemorySeenSet:
    """The set as it is where numpy is not installed."""
    installed = sys.modules["numpy"]
    sys.modules["numpy"] = None  # type: ignore[assignment]
    try:
        return MemorySeenSet(size)
    finally:
        sys.modules["numpy"] = installed


@dataclass(frozen=True)
class Contender:
    """One way to remember URLs: how it is made, which keys it gets, and what part of all URLs it is given."""

    make: Callable[[Path], Any]
    keys: Words
    part: float = 1.0


CONTENDERS = {
    "Python set of URLs": Contender(lambda _: PythonSet(), urls),
    "Python set of 64-bit integers": Contender(lambda _: PythonSet(), integers),
    "MemorySeenSet, 8 bytes": Contender(lambda _: MemorySeenSet(8), keys_of_8),
    "MemorySeenSet, 16 bytes": Contender(lambda _: MemorySeenSet(16), crawl_keys),
    "MemorySeenSet, 8 bytes, without numpy": Contender(lambda _: without_numpy(8), keys_of_8, part=0.1),
    "MemorySeenSet, 16 bytes, without numpy": Contender(lambda _: without_numpy(16), crawl_keys, part=0.1),
    "DiskSeenSet, 8 bytes": Contender(lambda path: DiskSeenSet(path, 8), keys_of_8),
    "DiskSeenSet, 16 bytes, keys of a crawl": Contender(lambda path: DiskSeenSet(path, 16), crawl_keys),
    "DiskSeenSet, 16 bytes, random keys": Contender(lambda path: DiskSeenSet(path, 16), random_keys),
}


def numbers_from(start: int, count: int) -> Numbers:
    return np.arange(start, start + count, dtype=np.uint64)


def offers(known: int) -> Iterator[Numbers]:
    """Batches of which 80 % are known, in runs as long as a page has links; the new ones never come twice."""
    chance = np.random.default_rng(7)
    pages = KNOWN // LINKS_OF_A_PAGE
    for number in range(ROUNDS):
        starts = chance.integers(0, known // LINKS_OF_A_PAGE, pages, np.uint64) * np.uint64(LINKS_OF_A_PAGE)
        seen = (starts[:, None] + numbers_from(0, LINKS_OF_A_PAGE)).ravel()
        yield np.concatenate([seen, numbers_from(known + number * (BATCH - KNOWN), BATCH - KNOWN)])


def resident(field: str) -> int:
    """Bytes of memory of this process, as Linux tells them."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def spent(call: Callable[[Any], Any], batches: Iterator[Any]) -> float:
    """CPU seconds in the calls, without what makes the batches."""
    total = 0.0
    for batch in batches:
        start = time.process_time()
        call(batch)
        total += time.process_time() - start
    return total


def measure(name: str, total: int) -> Figures:
    contender = CONTENDERS[name]
    count = int(total * contender.part) // BATCH * BATCH
    warm_up(contender)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seen.db"
        before = resident("VmRSS")
        seen = contender.make(path)
        fill = spent(seen.add_many, (contender.keys(numbers_from(at, BATCH)) for at in range(0, count, BATCH)))
        memory, peak = resident("VmRSS") - before, resident("VmHWM") - before
        batch = spent(seen.add_many, (contender.keys(numbers) for numbers in offers(count)))
        mix = np.random.default_rng(8).integers(0, 5 * count // 4, ALONE, np.uint64)
        alone = spent(lambda keys: [seen.add_if_new(key) for key in keys], iter([contender.keys(mix)]))
        disk = closed_size(seen, path) / len(seen) if isinstance(seen, DiskSeenSet) else 0.0
    asked = BATCH * ROUNDS
    times = (fill / count * 1e6, batch / asked * 1e6, alone / ALONE * 1e6)
    return Figures(name, count, memory / count, peak / count, disk, *times)


def closed_size(seen: DiskSeenSet, path: Path) -> int:
    seen.close()
    return path.stat().st_size


def warm_up(contender: Contender) -> None:
    """Whatever is imported or allocated once is there before memory is looked at."""
    with tempfile.TemporaryDirectory() as folder:
        seen = contender.make(Path(folder) / "seen.db")
        seen.add_many(contender.keys(numbers_from(0, 20 * BATCH)))
        if isinstance(seen, DiskSeenSet):
            seen.close()


def row(figures: Figures) -> str:
    disk = f"{figures.disk:.1f}" if figures.disk else "-"
    cells = [
        figures.name,
        f"{figures.urls:,}",
        f"{figures.memory:.1f}",
        f"{figures.peak:.1f}",
        disk,
        f"{figures.fill_us:.2f}",
        f"{figures.batch_us:.2f}",
        f"{figures.alone_us:.1f}",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.seen", description="what a seen-set costs")
    parser.add_argument("--keys", type=int, default=10_000_000, help="URLs known (default: 10,000,000)")
    parser.add_argument("--only", nargs="+", choices=list(CONTENDERS), default=list(CONTENDERS), metavar="NAME")
    parser.add_argument("--child", choices=list(CONTENDERS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(asdict(measure(arguments.child, arguments.keys))))
        return
    print("| set | URLs | memory, B | at its peak, B | disk, B | new, us | 80 % known, us | alone, us |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in arguments.only:
        command = [sys.executable, "-m", "bench.seen", "--child", name, "--keys", str(arguments.keys)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        print(row(Figures(**json.loads(answer))), flush=True)
    print(f"\n{processor()}, Python {platform.python_version()}, ", end="")
    print(f"numpy {np.__version__}, SQLite {sqlite3.sqlite_version}, {platform.system()}")


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "a machine")


if __name__ == "__main__":
    main()
