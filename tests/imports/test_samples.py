"""Archives of other makers, whole and broken: each is imported, or refused with a reason, and none stops us."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SAMPLES = Path(__file__).parents[1] / "data" / "warc"
MORE = Path(__file__).parents[3] / "shared" / "data" / "warc"
"""Those whose licences let them lie beside the project only."""

CAPTURES = {
    "cc.warc.gz": 1,
    "dupes.warc.gz": 3,
    "example-bad-non-chunked.warc.gz": 1,
    "example-bad.warc.gz": 2,
    "example-bad.warc.gz.bad": 2,
    "example-iana.org-chunked.warc": 1,
    "example-url-agnostic-orig.warc.gz": 1,
    "example-wget-1-14.warc.gz": 1,
    "example-wget-bad-target-uri.warc.gz": 1,
    "example-wpull.warc.gz": 1,
    "example.arc": 1,
    "example.arc.gz": 1,
    "example.warc": 1,
    "example.warc.gz": 1,
    "post-test.warc.gz": 3,
}
"""How many URLs of a sample are done then; 0 for the others."""
TWICE = {"example.warc.gz", "example.arc", "post-test.warc.gz"}
"""Those that are imported a second time too."""
BROKEN = {
    "bad.arc": "begins no record",
    "clipped.warc.gz": "ends too early",
    "clueweb-quirk.warc.gz": "its date is",
    "example-bad-non-chunked.warc.gz": "another digest",
    "example-space-in-url.arc": "ends too early",
    "example-trunc.warc": "no record begins here",
    "example-wrong-chunks.warc.gz": "another digest",
}


def samples() -> list[Path]:
    found = {path.name: path for folder in (MORE, SAMPLES) if folder.is_dir() for path in folder.iterdir()}
    return [path for name, path in sorted(found.items()) if ".warc" in name or ".arc" in name]


@pytest.mark.parametrize("path", samples(), ids=lambda path: path.name)
def test_a_sample_is_imported_or_refused_with_a_reason(
    crawlspace: Callable[..., Any], known: Callable[..., Any], tmp_path: Path, path: Path
) -> None:
    crawl = tmp_path / "crawl"
    ran = crawlspace("import", crawl, path, "--json")
    facts = ran.facts
    assert facts["captures"] == CAPTURES.get(path.name, 0)
    assert ran.code == (7 if path.name in BROKEN else 0)
    assert any(BROKEN[path.name] in damage for damage in facts["damages"]) if ran.code else not facts["damages"]
    states = known(crawl).states
    assert sum(states.get(state, 0) for state in ("done", "redirected", "dead", "stored")) == facts["captures"]
    # What is done can be read where it is said to lie, and nothing else is kept.
    checked = crawlspace("check", crawl)
    assert (checked.code, f"{facts['captures']} captures" in checked.out) == (0, True), checked.out + checked.err
    assert bool(list((crawl / "archive").glob("*"))) is bool(facts["captures"])
    if path.name not in TWICE:
        return
    again = crawlspace("import", crawl, path, "--json").facts
    assert (again["captures"], again["known"]) == (0, facts["captures"] + facts["known"])
    assert known(crawl).states == states
