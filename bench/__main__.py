"""`python -m bench`: serve real sites, crawl them with every contender in turn, print what it took.

usage: make bench [ARGS="--quick"]
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import crash, rounds, table
from bench.circumstances import circumstances, text
from bench.contenders import Contender, Keeps, contenders
from bench.results import Result, Resumption, Run, line
from bench.rounds import Plan
from bench.server import CannotServe, Server, serving
from bench.sites import REAL_SITES, Site, one_page_site, pages_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark. The exit code is 2 when something that it needs is missing, 3 when it is interrupted."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    options = _options(arguments)
    names = ["pg"] if options.quick else list(REAL_SITES) if options.site == "all" else [options.site]
    chosen = [REAL_SITES[name] for name in names]
    everyone = contenders(options.peers_python)
    wanted = [each for each in everyone if not options.only or each.name in options.only]
    problems = [problem for site in chosen if (problem := site.missing())] + _unknown(options.only, everyone)
    present = [each for each in wanted if _is_there(each)]
    if problems or not present:
        print("\n".join(problems or ["none of the programs to compare is installed"]), file=sys.stderr)
        return 2
    try:
        with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
            _run(options, present, chosen, Path(folder))
    except CannotServe as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"interrupted; what was measured is in {options.out}", file=sys.stderr)
        return 3
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="CPU, memory and disk of a crawl, beside its peers'.")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default: %(default)s)")
    parser.add_argument("--site", choices=[*REAL_SITES, "all"], default="all", help="site to crawl (default: all)")
    parser.add_argument("--quick", action="store_true", help="one round of the pg site")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="one contender; may be repeated")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS", help="longest crawl (default: 300)")
    parser.add_argument("--seed", type=int, default=0, help="chance that orders the contenders")
    parser.add_argument("--peers-python", default=sys.executable, metavar="PATH", help="a Python that has the peers")
    parser.add_argument("--out", type=Path, default=Path("build/bench.jsonl"), help="file of results, appended to")
    options = parser.parse_args(arguments)
    options.rounds = 1 if options.quick else options.rounds
    if options.rounds < 1:
        parser.error("--rounds must be 1 or more")
    return options


def _unknown(only: Sequence[str], everyone: Sequence[Contender]) -> list[str]:
    known = [each.name for each in everyone]
    return [f"no contender is called {name!r}; there are: {', '.join(known)}" for name in only if name not in known]


def _is_there(contender: Contender) -> bool:
    """Whether it can run here; said when not, so that no row is missing silently."""
    found = shutil.which(contender.program) is not None
    if found and contender.probe:
        command = [contender.program, "-c", f"import {contender.probe}"]
        found = subprocess.run(command, capture_output=True, check=False).returncode == 0
    if not found:
        print(f"left out: {contender.name}, which {contender.program} does not have", file=sys.stderr)
    return found


def _run(options: argparse.Namespace, present: Sequence[Contender], chosen: Sequence[Site], folder: Path) -> None:
    expected = {site.name: pages_of(site) for site in chosen}
    crawls = folder / "crawls"
    crawls.mkdir()
    plan = Plan(present, expected, options.rounds, options.limit, crawls)
    found = circumstances(chosen, options.peers_python)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    _keep(options.out, found)
    with serving([*chosen, one_page_site(folder / "one")], folder / "server") as server:
        print("warming up", flush=True)
        rounds.warm_up(plan, server)
        runs = _crawl_all(options, plan, server)
        resumed = _kill_all(options, plan, server)
    print(f"\n{text(found)}")
    for site, pages in expected.items():
        print(f"\n{len(pages)} pages. {table.crawls(runs, site)}")
    if resumed:
        print(f"\nkilled at {crash.KILL_AT:.0%} of {chosen[0].name}, then run again:\n\n{table.resumptions(resumed)}")
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
