"""Known URLs looked at again under other settings."""

from __future__ import annotations

from typing import Any

import pytest

from crawlspace.policy.review import NEVER_REJUDGED, Known, Ruling, Shelf, rejudge
from crawlspace.policy.scope import Scope, ScopeSettings
from crawlspace.types import Address, Reason, Relation
from crawlspace.urls import Identity, IdentitySettings, policy_from

IDENTITY = Identity(policy_from(IdentitySettings()), bytes(32))
KEY = bytes(range(16))


def scope(**settings: Any) -> Scope:
    seed = IDENTITY.identify("http://a.test/")
    assert isinstance(seed, Address)
    return Scope.of(ScopeSettings(**settings), [seed])


def known(shelf: Shelf, url: str = "http://a.test/x", **fields: Any) -> Known:
    usual: dict[str, Any] = {"host": "a.test", "front_class": 4, "depth": 3, "hops": 0}
    return Known(shelf, 1, KEY, url, relation=Relation.HYPERLINK, **{**usual, **fields})


@pytest.mark.parametrize("shelf", [Shelf.QUEUED, Shelf.DELAYED])
@pytest.mark.parametrize(
    ("url", "settings", "refusal"),
    [
        ("http://a.test/x", {}, None),
        ("http://b.test/x", {}, Reason.OUT_OF_SCOPE),
        ("http://a.test/x", {"exclude": ("x$",)}, Reason.EXCLUDED),
        ("http://a.test/x", {"max_depth": 2}, Reason.DEPTH),
        ("http://a.test/x", {"nofollow": True}, None),
        ("http://", {}, Reason.URL_LENGTH),
    ],
)
def test_what_waits_is_refused_when_the_settings_of_now_refuse_it(
    shelf: Shelf, url: str, settings: dict[str, Any], refusal: Reason | None
) -> None:
    waiting = known(shelf, url)
    expected = None if refusal is None else Ruling(waiting, refusal, 4)
    assert rejudge(waiting, scope(**settings), IDENTITY) == expected


@pytest.mark.parametrize("reason", list(Reason))
def test_what_was_refused_is_queued_when_the_settings_allow_it_and_it_was_theirs_to_say(reason: Reason) -> None:
    """What robots.txt, a page or a person said stands."""
    refused = known(Shelf.REFUSED, reason=reason.value)
    expected = None if reason in NEVER_REJUDGED else Ruling(refused, None, 4)
    assert rejudge(refused, scope(), IDENTITY) == expected


def test_what_was_refused_stays_so_when_it_is_refused_for_another_reason() -> None:
    assert rejudge(known(Shelf.REFUSED, reason="depth"), scope(exclude=("x",)), IDENTITY) is None


def test_a_url_keeps_its_key_and_its_seed_rights() -> None:
    """A seed may be longer than what links lead to, and is so again."""
    seed = known(Shelf.QUEUED, "http://a.test/" + "x" * 100, depth=0)
    small = scope(max_url_length=50)
    assert rejudge(seed, small, IDENTITY) is not None
    assert rejudge(known(Shelf.QUEUED, seed.url, depth=0), small, IDENTITY) is not None
    named = Known(Shelf.QUEUED, 1, KEY, seed.url, "a.test", 1, 0, 0, Relation.SEED)
    assert rejudge(named, small, IDENTITY) is None
    assert named.hid == int.from_bytes(KEY[:6], "big")
