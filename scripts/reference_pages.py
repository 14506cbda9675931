"""Writes the pages of the documentation that are made from the code, so that neither can drift from the other.

`make docs` runs it; a test compares what it would write with what is there. It reads the package's source
and its tables, and writes only below docs/reference.
"""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path

from crawlspace.settings import described
from crawlspace.states import MOVES, TERMINAL, Event, UrlState

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "crawlspace"
REFERENCE = ROOT / "docs" / "reference"

_MADE = "<!-- Made by `make docs`; change the code, not this page. -->"


def member_docstrings(source: str, class_name: str) -> dict[str, str]:
    """The sentence under each member of an enum, by the member's name."""
    body = next(
        node.body for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == class_name
    )
    found: dict[str, str] = {}
    for member, after in pairwise(body):
        if (
            isinstance(member, ast.Assign)
            and isinstance(member.targets[0], ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            found[member.targets[0].id] = " ".join(str(after.value.value).split())
    return found


def _diagram() -> list[str]:
    arrows = [
        f"    {state.name.lower()} --> {target.name.lower()}: {event.name.lower()}"
        for state, moves in MOVES.items()
        for event, target in moves.items()
    ]
    return ["```mermaid", "stateDiagram-v2", "    [*] --> queued", "    [*] --> skipped", *arrows, "```"]


def states_page() -> str:
    """The states of a URL, what may happen to it, and the diagram of the legal moves."""
    source = (PACKAGE / "states.py").read_text(encoding="utf-8")
    states = member_docstrings(source, "UrlState")
    events = member_docstrings(source, "Event")
    return "\n".join(
        [
            _MADE,
            "",
            "# States of a URL",
            "",
            "Every URL that was claimed is in exactly one of these. A move that is not drawn here is refused and",
            "changes nothing. A state is at rest when nothing is left to do unless a person, a setting or a new",
            "generation asks for it.",
            "",
            *_diagram(),
            "",
            "| state | meaning | at rest | leaves to |",
            "| --- | --- | --- | --- |",
            *(_state_row(state, states[state.name]) for state in UrlState),
            "",
            "| event | meaning |",
            "| --- | --- |",
            *(f"| {event.name.lower()} | {events[event.name]} |" for event in Event),
            "",
        ]
    )


def _state_row(state: UrlState, meaning: str) -> str:
    targets = dict.fromkeys(target.name.lower() for target in MOVES[state].values())
    ends = "yes" if state in TERMINAL else "no"
    return f"| {state.name.lower()} | {meaning} | {ends} | {', '.join(targets)} |"


def module_docstrings() -> list[tuple[str, str]]:
    """Every module of the package with the first paragraph of its docstring, in order of their names."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__") or "crawlspace"
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        found.append((name, " ".join(docstring.split("\n\n")[0].split())))
    return found


def modules_page() -> str:
    """Every module in one line, in its own words."""
    rows = (f"| `{name}` | {text.replace('|', chr(92) + '|')} |" for name, text in module_docstrings() if text)
    return "\n".join(
        [
            _MADE,
            "",
            "# Modules",
            "",
            "Which may import which is told in [the design](../architecture.md#3-layers).",
            "",
            "| module | what it is for |",
            "| --- | --- |",
            *rows,
            "",
        ]
    )


def settings_page() -> str:
    """Every setting with its default and its meaning, section by section."""
    lines = [
        _MADE,
        "",
        "# Settings",
        "",
        "Order: defaults, then `crawl.toml` in the crawl directory, then the environment",
        "(`CRAWLSPACE_HOST__DELAY=2`), then the command line (`-s host.delay=2`). An unknown key is an error with a",
        "suggestion. Where a setting may have no value, the word `none` says so. `crawlspace config show` prints",
        "what is in effect; a crawl writes it into `effective.toml`.",
    ]
    section = ""
    for setting in described():
        if setting.section != section or len(lines) == 8:
            section = setting.section
            lines += [
                "",
                f"## {section}" if section else "## Top",
                "",
                "| setting | default | meaning |",
                "| --- | --- | --- |",
            ]
        lines.append(f"| `{setting.name}` | `{setting.default}` | {setting.meaning} |".replace("||", "\\|\\|"))
    return "\n".join([*lines, ""])


PAGES = {"states.md": states_page, "modules.md": modules_page, "settings.md": settings_page}


def main() -> None:
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
