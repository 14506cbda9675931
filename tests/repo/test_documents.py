"""The documents say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import reference_pages
from crawlspace.states import MOVES, UrlState

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
ARROW = re.compile(r"^    (\w+) --> (\w+): (\w+)$", re.MULTILINE)


@pytest.mark.parametrize("name", reference_pages.PAGES)
def test_a_page_made_from_the_code_is_what_the_code_makes_now(name: str) -> None:
    """`make docs` writes it again."""
    assert (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8") == reference_pages.PAGES[name]()


def test_the_diagram_of_states_draws_every_legal_move_and_no_other() -> None:
    text = (ROOT / "docs" / "reference" / "states.md").read_text(encoding="utf-8")
    legal = {
        (state.name.lower(), target.name.lower(), event.name.lower())
        for state, moves in MOVES.items()
        for event, target in moves.items()
    }
    assert set(ARROW.findall(text)) == legal


def test_the_design_names_every_state() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \|", text[text.index("URL states") :], re.MULTILINE)
    assert [row for row in rows if row != "state"] == [state.name.lower() for state in UrlState]


def headings(text: str) -> set[str]:
    """Anchors of a page, made as the usual renderers make them."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_within_the_documents_leads_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in headings(target.read_text(encoding="utf-8")), link


def test_every_make_target_that_is_written_of_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {
        target for page in DOCUMENTS for target in re.findall(r"`make ([a-z]+)", page.read_text(encoding="utf-8"))
    }
    assert named
    assert named <= targets


def test_the_index_leads_to_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")} - {"index.md"}
    assert pages <= set(LINK.findall(index))
