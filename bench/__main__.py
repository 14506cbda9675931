"""`python -m bench`: serve real sites, crawl them with every contender in turn, print what it took.

usage: make bench [ARGS="--quick"]

The whole crawls come first, with their kills. Then follow the benchmarks that have commands of their own, each in a
process of its own, at sizes that a quarter of an hour is enough for; `--section` chooses among them.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import crash, rounds, table
from bench.circumstances import circumstances, text
from bench.contenders import Contender, Keeps, UnknownContender, add_peers, chosen, present
from bench.results import Result, Resumption, Run, line
from bench.rounds import Plan
from bench.server import CannotServe, Server, serving
from bench.sites import LARGE_SITES, REAL_SITES, Site, one_page_site, pages_of, site_called

CRAWLS = "crawls"
SECTIONS = {
    "parts": ("the parts of a page's way, each beside a library for it", ["bench.parts"]),
    "identity": ("one page under many addresses", ["bench.identity"]),
    "hosts": ("one host and sixteen, one process and two, politeness on", ["bench.hosts"]),
    "growth": ("a discovered URL, and pages beside many known ones", ["bench.growth"]),
    "known": ("offers beside a crawl, 20 URLs a host", ["bench.known", "--known", "10000", "--hosts", "500"]),
    "known-wide": ("offers beside a crawl, more hosts than URLs are known", ["bench.known", "--known", "10000"]),
    "sqlite": ("claims, leases and settlements of the embedded store", ["bench.frontier", "sqlite"]),
    "postgres": ("the same in a server for two clients", ["bench.frontier", "postgres"]),
}
"""The others: what each is about, and its module with its arguments."""
PYTHON_PEERS = frozenset({"identity", "parts"})
NODE_PEERS = frozenset({"identity"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark. The exit code is 2 when something that it needs is missing, 3 when it is interrupted."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    options = _options(arguments)
    try:
        status = _crawls(options) if CRAWLS in options.section else 0
        return status or max((_section(name, options) for name in options.section if name != CRAWLS), default=0)
    except (CannotServe, UnknownContender) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"interrupted; what was measured of whole crawls is in {options.out}", file=sys.stderr)
        return 3


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="CPU, memory and disk of a crawl, beside its peers'.")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default: %(default)s)")
    large = LARGE_SITES[0].name
    parser.add_argument(
        "--site",
        choices=[*REAL_SITES, large, "all"],
        default="all",
        help=f"site to crawl (default: all but {large})",
    )
    parser.add_argument(
        "--section",
        action="append",
        choices=[CRAWLS, *SECTIONS],
        help="one part of the benchmark; may be repeated (default: all)",
    )
    parser.add_argument("--quick", action="store_true", help="one round of the pg site, and nothing else")
    add_peers(parser)
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS", help="longest crawl (default: 300)")
    parser.add_argument("--seed", type=int, default=0, help="chance that orders the contenders")
    parser.add_argument("--out", type=Path, default=Path("build/bench.jsonl"), help="file of results, appended to")
    options = parser.parse_args(arguments)
    options.rounds = 1 if options.quick else options.rounds
    options.section = options.section or [CRAWLS, *(() if options.quick or options.only else SECTIONS)]
    if options.rounds < 1:
        parser.error("--rounds must be 1 or more")
    return options


def _crawls(options: argparse.Namespace) -> int:
    """Whole crawls of the chosen sites, and the kills."""
    names = ["pg"] if options.quick else list(REAL_SITES) if options.site == "all" else [options.site]
    sites = [site_called(name) for name in names]
    problems = [problem for site in sites if (problem := site.missing())]
    contenders = present(chosen(options))
    if problems or not contenders:
        print("\n".join(problems or ["none of the programs to compare is installed"]), file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        _run(options, contenders, sites, Path(folder))
    return 0


def _section(name: str, options: argparse.Namespace) -> int:
    """One of the other benchmarks, on our output; its exit status."""
    about, module = SECTIONS[name]
    print(f"\n{name}: {about}\n", flush=True)
    command = [sys.executable, "-m", *module]
    if name in PYTHON_PEERS:
        command += ["--peers-python", options.peers_python]
    if name in NODE_PEERS:
        command += ["--peers-node", str(options.peers_node)] if options.peers_node else []
        command += [part for only in options.only for part in ("--only", only)]
    status = subprocess.run(command, check=False).returncode
    if status:
        print(f"{name} ended with exit status {status}", file=sys.stderr)
    return int(bool(status))


def _run(options: argparse.Namespace, contenders: Sequence[Contender], sites: Sequence[Site], folder: Path) -> None:
    expected = {site.name: pages_of(site) for site in sites}
    crawls = folder / "crawls"
    crawls.mkdir()
    plan = Plan(contenders, expected, options.rounds, options.limit, crawls)
    found = circumstances(sites, options.peers_python)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    _keep(options.out, found)
    with serving([*sites, one_page_site(folder / "one")], folder / "server") as server:
        print("warming up", flush=True)
        rounds.warm_up(plan, server)
        runs = _crawl_all(options, plan, server)
        resumed = _kill_all(options, plan, server)
    print(f"\n{text(found)}")
    for site, pages in expected.items():
        print(f"\n{len(pages)} pages. {table.crawls(runs, site)}")
    if resumed:
        print(f"\nkilled at {crash.KILL_AT:.0%} of {sites[0].name}, then run again:\n\n{table.resumptions(resumed)}")
    print(f"\n{table.noise(runs)}\nresults: {options.out}")


def _crawl_all(options: argparse.Namespace, plan: Plan, server: Server) -> list[Run]:
    runs = []
    for run in rounds.run_rounds(plan, server, options.seed):
        runs.append(run)
        _keep(options.out, run)
        print(
            f"{time.strftime('%H:%M:%S')} round {run.round + 1} of {plan.rounds}, {run.site}: {run.contender},"
            f" {run.pages} pages, CPU {run.cpu:.2f} s, {run.wall:.2f} s" + (", FAILED" if run.failed else ""),
            flush=True,
        )
    return runs


def _kill_all(options: argparse.Namespace, plan: Plan, server: Server) -> list[Resumption]:
    """Those that say they survive, on the first site."""
    site = next(iter(plan.expected))
    resumed = []
    for contender in plan.contenders:
        if contender.keeps is Keeps.ALL:
            print(f"{time.strftime('%H:%M:%S')} kill -9 and again, {site}: {contender.name}", flush=True)
            resumed.append(crash.kill_and_resume(contender, server[site], plan))
            _keep(options.out, resumed[-1])
    return resumed


def _keep(file: Path, result: Result) -> None:
    with file.open("ab") as out:
        out.write(line(result))


if __name__ == "__main__":
    sys.exit(main())
