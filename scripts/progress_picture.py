"""Draw docs/pictures/progress.svg: the live display of a crawl, by the code that draws it on a terminal.

The figures are those of a crawl of the bundled toy web, ten seconds after its start.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console

from crawlspace.cli.progress import render
from crawlspace.events import HostWaits, PageSettled, ScopeWidened
from crawlspace.observe.counters import Counters
from crawlspace.states import UrlState
from crawlspace.types import Counts

TARGET = Path(__file__).parent.parent / "docs" / "pictures" / "progress.svg"
STATES = {UrlState.QUEUED: 41, UrlState.LEASED: 12, UrlState.DONE: 391, UrlState.REDIRECTED: 25, UrlState.SKIPPED: 88}


def main() -> None:
    """Write the picture."""
    time = [0.0]
    counters = Counters(lambda: time[0])
    console = Console(record=True, width=80, file=io.StringIO(), force_terminal=True)
    told = [
        counters.see(ScopeWidened("http://old.test/", "http://new.test/", "new.test")),
        counters.see(HostWaits("dead.shop.test", "host_unreachable", 0)),
    ]
    for line in told:
        console.print(line, markup=False, highlight=False)
    for number in range(559):
        time[0] += 0.0179
        kind, error = ("retry", "http_503") if number % 47 == 0 else ("done", None)
        counters.see(PageSettled("https://shop.test/product/57", kind, 200, error, 4000, 3, 0))
    states = {state: STATES.get(state, 11) for state in UrlState}
    counts = Counts(states=states, pages=391, fetches=430, bytes=12_300_000, duplicates=52, hosts=26)
    console.print(render(counts, counters, 10.0))
    picture = console.export_svg(title="crawlspace demo")
    # Rich points at fonts of a foreign server; a viewer without them takes its own monospaced one.
    TARGET.write_text(re.sub(r"\s*@font-face \{.*?\}", "", picture, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
