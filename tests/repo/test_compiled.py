"""What is compiled stays within its memory, and what stands in for it where nothing was compiled is whole."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

from crawlspace.content import novelty, simhash
from crawlspace.pages import scan

ROOT = Path(__file__).resolve().parents[2] / "src" / "crawlspace"
SCAN = """
import random
import _scan

PIECES = (
    "< > </ / = \\" \' - -- ! ? ; # & &# &amp; &#x80; &not &notin; &copy= &nGt; a A x 1 href rel nofollow http:"
    " mailto: <a| <a|href= <area|href= <svg> </svg> <svg/> <math </math> <![CDATA[ ]]> <select> </select> <template>"
    " </template> <script> </script> <SCRIPT </SCRIPT| <!-- --> <style> </style>"
    " <title> </title> <textarea> </textarea> <xmp>"
    " <iframe|src=q> </iframe> <plaintext> <meta|name=a|content=b> <link|rel=x|href=y> <base|href=z> <html|lang=de>"
    " <head> <p> <noframes> \\u00a0 \\u00e9 text xlink:href=x | \\n \\r \\x0b \\0"
).replace("|", chr(0xFFFF)).split(" ")
PIECES = [piece.replace(chr(0xFFFF), " ") for piece in PIECES]
chance = random.Random(COUNT)
for _ in range(COUNT):
    body = "".join(chance.choice(PIECES) for _ in range(chance.randint(1, 30))).encode()
    noise = bytes(chance.randrange(256) for _ in range(chance.randint(0, 40)))
    cut = body[: chance.randint(0, len(body))]
    for each in (body, cut, noise, noise.join([cut, cut])):
        _scan.scan(bytes(bytearray(each)), chance.choice([0, 1, 100]), chance.random() < 0.9)
print("done")
"""
WORDS = """
import random
from hashlib import blake2b
import _words

class Numbers(dict):
    def __missing__(self, run):
        return b"".join(blake2b(word, digest_size=24).digest() for word in run.split(b"\\xc3"))

chance = random.Random(COUNT)
for _ in range(COUNT):
    text = bytes(chance.choice(b"ab_Z9 .\\xc3\\xa9\\x00") for _ in range(chance.randint(0, 60)))
    _words.simhash(bytes(bytearray(text)), Numbers())
    _words.simhash(b"a" * chance.randint(0, 60), Numbers())
    pieces = [bytes(chance.choice(b"ab_9") for _ in range(chance.randint(0, 3))) for _ in range(4)]
    _words.without(bytes(bytearray(text)), pieces)
for wrong in ({}, {b"a": 1}, {b"a": b"short"}, 5, [1]):
    try:
        (_words.without if isinstance(wrong, list) else _words.simhash)(b"a", wrong)
    except (KeyError, TypeError, ValueError):
        continue
print("done")
"""


@pytest.mark.parametrize("count", [1_000, pytest.param(300_000, marks=pytest.mark.long)])
@pytest.mark.parametrize(("source", "program"), [("pages/_scan.c", SCAN), ("content/_words.c", WORDS)])
def test_no_byte_is_touched_that_is_not_its_own(tmp_path: Path, source: str, program: str, count: int) -> None:
    """Under the compiler's watch over addresses and undefined behaviour."""
    compiler = shutil.which("gcc")
    headers = sysconfig.get_paths()["include"]
    if compiler is None or not Path(headers, "Python.h").exists():
        pytest.skip("gcc or the headers of Python are not installed")
    asked = subprocess.run([compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    library = asked.stdout.strip()
    if not Path(library).is_absolute():
        pytest.skip("gcc has no address sanitizer here")
    flags = ["-g", "-O1", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-shared", "-fPIC"]
    watch = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    made = tmp_path / f"{Path(source).stem}.abi3.so"
    subprocess.run([compiler, *flags, *watch, f"-I{headers}", str(ROOT / source), "-o", str(made)], check=True)
    watched = {"LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
    environment = {**os.environ, **watched, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", f"COUNT = {count}\n{program}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "done\n", done.stderr[-4000:]


def loaded_without(monkeypatch: pytest.MonkeyPatch, module: ModuleType, compiled: str) -> ModuleType:
    """A module as it is where this one was not compiled."""
    monkeypatch.setitem(sys.modules, compiled, None)
    spec = importlib.util.spec_from_file_location("without", str(module.__file__))
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_where_nothing_was_compiled_all_is_done_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = loaded_without(monkeypatch, scan, "crawlspace.pages._scan")
    assert not reader.COMPILED
    assert reader.scan(b"<title>a</title>", 9).title == "a"
    text = ("one two three four \u00e9 " * 9).encode()
    for module, made in ((simhash, "text_simhash"), (novelty, "novelty")):
        plain = loaded_without(monkeypatch, module, "crawlspace.content._words")
        given = (text,) if module is simhash else (text, "http://a.test/one/3")
        assert getattr(plain, made)(*given) == getattr(module, made)(*given)
