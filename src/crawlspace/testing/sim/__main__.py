"""`python -m crawlspace.testing.sim --seed N`: simulate a crawl with faults, and say which invariants hold."""

from __future__ import annotations

import argparse
import sys

from crawlspace.testing.sim import Size, simulate


def main() -> int:
    """Run some seeds; 1 when an invariant was broken."""
    parser = argparse.ArgumentParser(prog="python -m crawlspace.testing.sim", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds")
    parser.add_argument("--hosts", type=int, default=Size().hosts, help="hosts, at most")
    parser.add_argument("--pages", type=int, default=Size().pages, help="pages, about")
    parser.add_argument("--events", type=int, default=Size().events, help="events during which things go wrong")
    parser.add_argument("--least", type=int, default=Size().least, help="hosts, at least")
    chosen = parser.parse_args()
    failed = 0
    for seed in range(chosen.seed, chosen.seed + chosen.seeds):
        report = simulate(seed, Size(chosen.hosts, chosen.pages, chosen.events, chosen.least))
        if report.violations or chosen.seeds == 1:
            sys.stdout.write(f"{report}\n")
            sys.stdout.flush()
        failed += bool(report.violations)
    if chosen.seeds > 1:
        sys.stdout.write(f"{chosen.seeds} seeds, {failed} of them broke an invariant\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
