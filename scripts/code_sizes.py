"""How long our functions and files are, and where one is too long.

`make check` prints the medians, so that drift is seen, and fails on a breach. A function is counted from its
`def` to its end without its docstring; functions inside it belong to it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("src", "tests", "scripts", "bench")

FILE_LINES = 450
FUNCTION_LINES = 50
NESTING = 3

_BLOCKS = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_HOLDERS = (ast.stmt, ast.ExceptHandler, ast.match_case)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Size:
    """One function or file: where it is, how many lines, how deep its blocks nest (0 for a file)."""

    place: str
    lines: int
    nesting: int = 0


def _docstring_lines(function: Function) -> int:
    if ast.get_docstring(function, clean=False) is None:
        return 0
    first = function.body[0]
    return (first.end_lineno or first.lineno) - first.lineno + 1


def _is_elif(child: ast.AST, parent: ast.AST) -> bool:
    return isinstance(child, ast.If) and isinstance(parent, ast.If) and parent.orelse == [child]


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """What `node` holds that may hold statements; expressions never do."""
    return (child for child in ast.iter_child_nodes(node) if isinstance(child, _HOLDERS))


def _all_functions(node: ast.AST) -> Iterator[Function]:
    for child in _inside(node):
        if isinstance(child, _FUNCTIONS):
            yield child
        yield from _all_functions(child)


def _nesting(node: ast.AST, depth: int = 0) -> int:
    """Deepest block under `node`; an elif is as deep as its if, and functions inside are counted by themselves."""
    deepest = depth
    for child in _inside(node):
        if isinstance(child, _FUNCTIONS):
            continue
        deeper = isinstance(child, _BLOCKS) and not _is_elif(child, node)
        deepest = max(deepest, _nesting(child, depth + deeper))
    return deepest


def functions(source: str, name: str) -> list[Size]:
    """Sizes of the functions in `source`, the file called `name`."""
    return [
        Size(
            place=f"{name}:{node.lineno} {node.name}",
            lines=(node.end_lineno or node.lineno) - node.lineno + 1 - _docstring_lines(node),
            nesting=_nesting(node),
        )
        for node in _all_functions(ast.parse(source))
    ]


def breaches(source: str, name: str) -> list[str]:
    """What in `source` is over the limits, one sentence each."""
    found = []
    lines = source.count("\n")
    if lines > FILE_LINES:
        found.append(f"{name}: {lines} lines, {FILE_LINES} are allowed")
    for size in functions(source, name):
        if size.lines > FUNCTION_LINES:
            found.append(f"{size.place}: {size.lines} lines, {FUNCTION_LINES} are allowed")
        if size.nesting > NESTING:
            found.append(f"{size.place}: blocks nest {size.nesting} deep, {NESTING} are allowed")
    return found


def files(folders: Sequence[str] = SOURCES) -> list[tuple[str, str]]:
    """Name, relative to the repository, and text of every Python file in `folders`."""
    paths = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return [(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


def _spread(title: str, values: list[int]) -> str:
    ordered = sorted(values) or [0]
    tenth = ordered[min(len(ordered) - 1, len(ordered) * 9 // 10)]
    return f"{title:<16} {len(values):>5} {median(ordered):>7g} {tenth:>5} {ordered[-1]:>5}"


def report() -> str:
    """The table of counts, medians, ninth tenths and maxima: files and functions of the package."""
    package = files(("src",))
    sizes = [size for name, text in package for size in functions(text, name)]
    return "\n".join(
        [
            f"{'':<16} {'count':>5} {'median':>7} {'p90':>5} {'max':>5}",
            _spread("file lines", [text.count("\n") for _, text in package]),
            _spread("function lines", [size.lines for size in sizes]),
            _spread("nesting", [size.nesting for size in sizes]),
        ]
    )


def main() -> int:
    print(report())
    found = [sentence for name, text in files() for sentence in breaches(text, name)]
    for sentence in found:
        print(sentence, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
