"""Explanations: every step that changed something, in order, and nothing else."""

from __future__ import annotations

import msgspec
import pytest

from crawlspace.urls import AGGRESSIVE, CONSERVATIVE, Identity, IdentitySettings, explain, policy_from
from crawlspace.urls.rules import Rules

TEXT = " HTTP://u:p@Bücher.test.:80/a/../b%7e;jsessionid=cdc993a493e899bed04f4d0c8a462a03?b=1&&a=2&gclid=3#f"


def test_the_steps_lead_from_the_text_to_the_canonical_form_without_a_gap() -> None:
    told = Identity(CONSERVATIVE).explain(TEXT)
    assert [change.name for change in told.changes] == [
        "parse",
        "user-information",
        "trailing-dot",
        "fragment",
        "percent-encoding",
        "path-session",
        "blank-params",
        "trackers",
        "sort-params",
    ]
    assert told.changes[0].before == told.text == TEXT
    assert told.changes[-1].after == told.canonical == "http://xn--bcher-kva.test/b~?a=2&b=1"
    pairs = zip(told.changes, told.changes[1:], strict=False)
    assert all(earlier.after == later.before for earlier, later in pairs)
    assert all(change.why and change.source for change in told.changes)
    assert told.policy == CONSERVATIVE.identifier
    assert told.reason is None


def test_a_canonical_url_has_nothing_to_explain() -> None:
    assert explain("http://a.test/b", None, CONSERVATIVE).changes == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" http://a.test/", "blanks"),
        ("http://a.te\nst/", "tabs and line ends"),
        ("http:\\\\a.test/", "backslashes"),
        ("Http://a.test/", "scheme is written in lower case"),
        ("http://ü.test/", "IDNA"),
        ("http://A.test/", "host is written in lower case"),
        ("http://%61.test/", "host is percent-decoded"),
        ("http://a.test:080/", "own port"),
        ("https://a.test:443", "own port"),
        ("http://a.test:/", "own port"),
        ("http://a.test/b/%2E./c", "dot segments"),
        ("http://a.test", "empty path"),
        ("/x", "resolved against"),
        ("http://a.test/a b", "percent-encoded"),
        ("http://0x7f.1/", "as browsers write it"),
    ],
)
def test_what_the_parser_did_is_said_in_words(text: str, words: str) -> None:
    first = explain(text, "http://base.test/", CONSERVATIVE).changes[0]
    assert first.name == "parse"
    assert words in first.why


@pytest.mark.parametrize(
    ("text", "base", "reason"),
    [("", None, "empty"), ("mailto:x", None, "scheme"), ("x", "no base", "syntax"), ("http://[", None, "host")],
)
def test_a_refusal_is_explained_by_its_reason(text: str, base: str | None, reason: str) -> None:
    told = explain(text, base, CONSERVATIVE)
    assert (told.canonical, told.reason, told.changes) == (None, reason, ())


def test_rules_of_the_user_are_called_the_users() -> None:
    told = explain("http://www.a.test./x/index.html", None, AGGRESSIVE)
    assert [change.name for change in told.changes] == [
        "trailing-dot",
        "www",
        "scheme",
        "index-document",
        "trailing-slash",
    ]
    assert told.changes[1].why.startswith("by your rules")
    named = policy_from(IdentitySettings(strip=["x"]))
    assert explain("http://a.test/?x=1", None, named).changes[-1].name == "strip-params"


def test_with_every_rule_off_only_the_parser_and_the_fragment_have_something_to_say() -> None:
    off = {name: False for name in Rules.__struct_fields__ if isinstance(getattr(Rules(), name), bool)}
    quiet = policy_from(msgspec.convert(off, IdentitySettings))
    told = explain(f"{TEXT}&CFID=1&CFTOKEN=15501799&", None, quiet)
    assert [change.name for change in told.changes] == ["parse", "user-information", "fragment"]
