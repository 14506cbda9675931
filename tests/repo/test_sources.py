"""What may stand in no file of ours."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "crawlspace"

UNSAFE_MODULES = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__"}
UNSAFE_ATTRIBUTES = {("os", "system"), ("os", "popen"), ("yaml", "load"), ("importlib", "import_module")}

ALLOWED = {
    "src/crawlspace/__init__.py": ["importlib.import_module"],
    "src/crawlspace/cli/__init__.py": ["importlib.import_module"],
    "src/crawlspace/app/parsing.py": ["importlib.import_module"],
    "src/crawlspace/app/exporting/stages.py": ["importlib.import_module"],
    "src/crawlspace/app/routes.py": ["importlib.import_module"],
}
"""Modules of the package's own, by names that stand in those files: loaded late, so that a start is quick.

And parsers, stages and log-ins, whose names a user gives: their code is the user's own.
"""

# In two halves each, since this file is one of those that may not hold them.
REGISTRIES = [
    "pypi" + ".org",
    "pythonhosted" + ".org",
    "npmjs" + ".org",
    "npmjs" + ".com",
    "deb.debian" + ".org",
    "security.debian" + ".org",
    "proxy.golang" + ".org",
]
RECORDED = ("tests/data/", ".hypothesis/")
"""Folders of other people's pages and addresses, kept as they were recorded."""


def ours() -> list[Path]:
    """Every file that is in the repository or about to be."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=30,
    ).stdout.decode()
    paths = (ROOT / name for name in listed.split("\0") if name and not name.startswith(RECORDED))
    return sorted(path for path in paths if path.is_file())


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def unsafe(tree: ast.AST) -> Iterator[str]:
    """What in a module would let data become code, or start a shell; one phrase each."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in UNSAFE_MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in UNSAFE_MODULES:
            yield node.module or ""
        elif isinstance(node, ast.Call):
            yield from unsafe_call(node)


def unsafe_call(call: ast.Call) -> Iterator[str]:
    match call.func:
        case ast.Name(id=name) if name in UNSAFE_CALLS:
            yield name
        case ast.Attribute(value=ast.Name(id=module), attr=name) if (module, name) in UNSAFE_ATTRIBUTES:
            yield f"{module}.{name}"
    for keyword in call.keywords:
        if keyword.arg == "shell" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False):
            yield "shell="


@pytest.mark.parametrize(
    ("source", "phrases"),
    [
        ("import pickle", ["pickle"]),
        ("from marshal import loads", ["marshal"]),
        ("eval('1')", ["eval"]),
        ("subprocess.run(command, shell=True)", ["shell="]),
        ("subprocess.run(command, shell=False)", []),
        ("os.system(command)", ["os.system"]),
        ("re.compile(pattern)", []),
        ("import json", []),
    ],
)
def test_the_search_for_unsafe_code_finds_it(source: str, phrases: list[str]) -> None:
    assert list(unsafe(ast.parse(source))) == phrases


def test_nothing_in_the_package_unpickles_evaluates_or_starts_a_shell() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): phrases
        for path in modules()
        if (phrases := list(unsafe(ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert {name: phrases for name, phrases in found.items() if ALLOWED.get(name) != phrases} == {}


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        path.relative_to(ROOT).as_posix()
        for path in modules()
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not silent


def test_no_file_names_the_host_of_a_package_registry() -> None:
    """Where packages come from is the machine's own setting."""
    found = [
        f"{path.relative_to(ROOT)}: {host}"
        for path in ours()
        for host in REGISTRIES
        if host.encode() in path.read_bytes()
    ]
    assert not found


def test_no_module_is_called_after_nothing() -> None:
    """A module is a noun of the domain."""
    empty = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "base", "core"}
    assert not [path for path in modules() if path.stem.strip("_") in empty]


def test_no_work_is_left_in_comments() -> None:
    """What is left to do stands in an issue."""
    marks = ["TO" + "DO", "FIX" + "ME", "XX" + "X:"]
    found = [
        f"{path.relative_to(ROOT)}: {mark}"
        for path in ours()
        if path.suffix in {".py", ".sql", ".md", ".toml"} or path.name == "Makefile"
        for mark in marks
        if mark in path.read_text(encoding="utf-8")
    ]
    assert not found
