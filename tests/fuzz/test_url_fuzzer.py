"""A fuzzer of URLs: texts of known cases cut, joined and bent by chance, from a seed that repeats every run.

What takes a new way through the rules (a new set of steps that changed something, or a new refusal) joins the texts
that are bent next, so that later texts reach combinations that no case was written for.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import ada_url
import pytest

from crawlspace.types import Address, Unusable
from crawlspace.urls import (
    AGGRESSIVE,
    CONSERVATIVE,
    HostChoices,
    Identity,
    IdentitySettings,
    Policy,
    UrlError,
    canonicalize,
    canonicalize_many,
    explain,
    host_name,
    policy_from,
)
from crawlspace.urls.parser import resolve

DATA = Path(__file__).resolve().parents[1] / "data"
BASES = [None, "https://www.a.test/dir/page?q#f", "http://a.test/.well-known/a?#f", "http://a.test//b/.c/"]
REASONS = {"scheme", "host", "syntax", "too_long", "empty"}
CORPUS = 3000
"""Texts kept; a new one then takes the place of one by chance."""

TOKENS = [
    "http://",
    "https://",
    "//",
    "///",
    "\\",
    "@",
    ":",
    ":80",
    ":443",
    ":0x50",
    "[",
    "]",
    "[::1]",
    "%",
    "%2",
    "%41",
]
TOKENS += [
    "%2f",
    "%2E",
    "%00",
    "%zz",
    "/./",
    "/../",
    "/%2e%2e/",
    "?",
    "??",
    "&",
    "&&",
    "=",
    ";",
    "#",
    "#!",
    "#!/r",
    "www.",
]
TOKENS += [
    "/.well-known",
    "/.b/../",
    ".",
    "..",
    "xn--",
    "xn--a",
    "é",
    "ß",
    "İ",
    "\u200d",
    "\u3002",
    "\ud800",
    "\x00",
    "\t",
    "\n",
    " ",
    "\u00a0",
]
TOKENS += [
    "utm_source=x",
    "gclid=1",
    "mkt_tok=1",
    "/unsubscribe",
    "PHPSESSID=0123456789abcdef",
    "sid=0123456789abcdef0a",
]
TOKENS += [
    ";jsessionid=0123456789ABCDEF",
    "CFID=1",
    "CFTOKEN=12345678",
    "index.html",
    "default.aspx",
    "0x7f.1",
    "127.1",
]
TOKENS += [
    "(S(4hqa0555fwsecu455xqckv45))",
    "a=1",
    "a=2",
    "b",
    "B",
    "/",
    "+",
    "%2B",
    "65536",
    "localhost",
    "file:",
    "js:",
]

OWN = policy_from(
    IdentitySettings(
        hash_routes=True,
        semicolons=True,
        trailing_slash="add",
        keep=["utm_source"],
        strip=["b*"],
        hosts=[
            HostChoices(suffix="a.test", lower_path=True, fold_www=True, sort=False),
            HostChoices(pattern="[0-9.]+", merge_slashes=True, hash_routes=False),
        ],
    )
)
POLICIES = {"conservative": CONSERVATIVE, "aggressive": AGGRESSIVE, "own": OWN}


def known_texts() -> list[str]:
    """The inputs of the standard's tests and of other projects' cases."""
    urls = [row["input"] for row in json.loads((DATA / "url-whatwg" / "urls.json").read_text("utf-8"))]
    facts = [row["input"] for row in json.loads((DATA / "url-canonical" / "facts.json").read_text("utf-8"))]
    groups = json.loads((DATA / "url-canonical" / "identity.json").read_text("utf-8"))
    return sorted({*urls, *facts, *(url for group in groups for url in group["urls"])})


def cut(text: str, chance: random.Random) -> str:
    start = chance.randrange(len(text) + 1)
    return text[:start] + text[start + chance.randint(1, 8) :]


def insert(text: str, chance: random.Random) -> str:
    place = chance.randrange(len(text) + 1)
    return text[:place] + chance.choice(TOKENS) + text[place:]


def repeat(text: str, chance: random.Random) -> str:
    start = chance.randrange(len(text) + 1)
    piece = text[start : start + chance.randint(1, 12)]
    return text[:start] + piece * chance.randint(2, 4) + text[start + len(piece) :]


def swap_case(text: str, chance: random.Random) -> str:
    start = chance.randrange(len(text) + 1)
    return text[:start] + text[start:].swapcase()


def encode_one(text: str, chance: random.Random) -> str:
    place = chance.randrange(len(text) + 1)
    encoded = "".join(f"%{byte:02x}" for byte in text[place : place + 1].encode("utf-8", "replace"))
    return text[:place] + encoded + text[place + 1 :]


def replace_one(text: str, chance: random.Random) -> str:
    place = chance.randrange(len(text) + 1)
    return text[:place] + chr(chance.choice([chance.randrange(128), chance.randrange(0x3000)])) + text[place + 1 :]


BENDS: list[Callable[[str, random.Random], str]] = [cut, insert, insert, repeat, swap_case, encode_one, replace_one]


class Fuzzer:
    """Texts by chance, led by what they have reached."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.texts = known_texts()
        self.reached: set[tuple[str, ...]] = set()

    def text(self) -> str:
        """The next one."""
        text = self.chance.choice(self.texts)
        if self.chance.random() < 0.2:
            other = self.chance.choice(self.texts)
            text = text[: self.chance.randrange(len(text) + 1)] + other[self.chance.randrange(len(other) + 1) :]
        for _ in range(self.chance.randint(1, 4)):
            text = self.chance.choice(BENDS)(text, self.chance)
        return text[:2000]

    def learn(self, text: str, way: tuple[str, ...]) -> None:
        """Keep a text that went a new way."""
        if way in self.reached:
            return
        self.reached.add(way)
        if len(self.texts) < CORPUS:
            self.texts.append(text)
        else:
            self.texts[self.chance.randrange(CORPUS)] = text


def read_exactly(text: str, base: str | None) -> str | None:
    """What the slower parser, the newer of the two, makes of a text."""
    try:
        return str(ada_url.URL(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"), base).href)
    except ValueError:
        return None


def hold_reading(text: str, base: str | None) -> None:
    """Both parsers read every address of http alike."""
    start = None if base is None else resolve(base)
    quick = resolve(text, start)
    exact = read_exactly(text, None if start is None else start.href)
    if (exact or "").startswith(("http:", "https:")) or (quick and quick.protocol in ("http:", "https:")):
        assert quick is not None
        assert quick.href == exact


def check(text: str, base: str | None, policy: Policy) -> tuple[str, ...]:
    """Hold one text to all that must be true of any; the way it took through the rules."""
    hold_reading(text, base)
    found = Identity(policy).identify(text, base)
    told = explain(text, base, policy)
    if isinstance(found, Unusable):
        assert found.reason in REASONS
        assert (told.canonical, told.reason) == (None, found.reason)
        with pytest.raises(UrlError) as refused:
            canonicalize(text, base, policy)
        assert refused.value.reason == found.reason
        return (found.reason,)
    hold_address(found, policy)
    assert told.canonical == found.canonical
    assert canonicalize_many([text, text], base, policy) == [found.canonical] * 2
    return tuple(change.name for change in told.changes)


def hold_address(found: Address, policy: Policy) -> None:
    """Form and fetch URL are read as themselves, and the host is the host that is connected to, after the folds."""
    form = resolve(found.canonical)
    assert form is not None
    assert form.href == found.canonical
    assert canonicalize(found.canonical, None, policy) == found.canonical
    request = resolve(found.fetch_url)
    assert request is not None
    assert request.href == found.fetch_url
    assert (request.username, request.password) == ("", "")
    assert found.fetch_url.isascii()
    assert "#" not in found.fetch_url
    folded, _ = policy.fold_host(request.hostname)
    assert host_name(found.host) == folded == form.hostname
    if "#" not in found.canonical:
        assert Identity(policy).identify(found.fetch_url) == found


def fuzz(seed: int, texts: int, policy: Policy) -> Fuzzer:
    fuzzer = Fuzzer(seed)
    for number in range(texts):
        text = fuzzer.text()
        base = fuzzer.chance.choice(BASES)
        try:
            fuzzer.learn(text, check(text, base, policy))
        except Exception as error:
            raise AssertionError(f"text {number} of seed {seed}, base {base!r}: {text!r}") from error
    return fuzzer


@pytest.mark.parametrize("name", POLICIES)
def test_bent_urls_keep_every_promise(name: str) -> None:
    fuzzer = fuzz(seed=41, texts=1500, policy=POLICIES[name])
    assert len(fuzzer.reached) > 20, "the texts take too few ways to say anything"


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("seed", [101, 102, 103, 104])
def test_a_great_many_bent_urls_keep_every_promise(name: str, seed: int) -> None:
    fuzz(seed, texts=100_000, policy=POLICIES[name])


@pytest.mark.parametrize(
    ("text", "base", "href"),
    [
        ("https://a.test/b/.well-known/../c", None, "https://a.test/b/c"),
        ("https://a.test//.b/./", None, "https://a.test//.b/"),
        ("https://a.test/b/\t.c/../d", None, "https://a.test/b/d"),
        ("x/.b/../c", "https://a.test/.d/e", "https://a.test/.d/x/c"),
        ("https://a.test/b^?c^", None, "https://a.test/b%5E?c^"),
        ("#f", "https://a.test/?#g", "https://a.test/?#f"),
        (" ", "https://a.test/?", "https://a.test/?"),
        ("#f", "https://a.test/b#g", "https://a.test/b#f"),
    ],
)
def test_what_the_quicker_parser_reads_wrong_is_read_by_the_other(text: str, base: str | None, href: str) -> None:
    parsed = resolve(text, None if base is None else resolve(base))
    assert parsed is not None
    assert parsed.href == href


def test_a_seed_gives_the_same_texts_again() -> None:
    first, second = Fuzzer(7), Fuzzer(7)
    assert [first.text() for _ in range(100)] == [second.text() for _ in range(100)]


@pytest.mark.no_cover
@pytest.mark.parametrize("name", POLICIES)
def test_bent_urls_blown_up_to_100_kb_cost_less_than_ten_milliseconds(name: str) -> None:
    """Taken or refused. One of some tries must hold, since the machine may be busy; untraced, since that slows it."""
    fuzzer = Fuzzer(seed=43)
    for _ in range(60):
        piece = fuzzer.text() or "x"
        text = "http://a.test/" + piece * (100_000 // len(piece))
        assert any(seconds(text, POLICIES[name]) < 0.01 for _ in range(20)), piece


def seconds(text: str, policy: Policy) -> float:
    """CPU time to read all of it and as much of it as the limit takes."""
    start = time.process_time()
    Identity(policy).identify(text)
    Identity(policy).identify(text[:8000])
    return time.process_time() - start
