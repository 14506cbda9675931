"""Commands as they are written down, and which dead letters one means."""

from __future__ import annotations

import msgspec
import pytest

from crawlspace.errors import ConfigError, StoreDamaged
from crawlspace.policy.commands import (
    SEEDS_AT_ONCE,
    Block,
    Command,
    Drop,
    Heed,
    Ignore,
    Inject,
    Letter,
    Pause,
    Prioritize,
    Rejudge,
    Requeue,
    Resume,
    Seed,
    Selection,
    decode,
    encode,
)

LETTER = Letter(7, "http_404", 404, "a.test", "http://a.test/x/y", 1000)


@pytest.mark.parametrize(
    "command",
    [
        Pause("a.test"),
        Block("a.test"),
        Resume("a.test"),
        Requeue(Selection(error="http_404", ids=(1, 2))),
        Drop(Selection(pattern="x", before=5)),
        Inject([Seed(url="http://a.test/", meta={"a": [1, None]}, method="POST", body=b"\x00\xff")]),
        Ignore("/a"),
        Heed("/a"),
        Prioritize("/a", 3),
        Rejudge("changed"),
    ],
    ids=lambda command: type(command).__name__,
)
def test_a_command_is_read_back_as_it_was_written(command: Command) -> None:
    assert decode(encode(command)) == command


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"type":"run"}',
        '{"type":"pause","host":"a","more":1}',
        '{"type":"prioritize","pattern":"x","front_class":10}',
        '{"type":"ignore","pattern":""}',
        '{"type":"ignore","pattern":"\ud800"}',
        msgspec.json.encode({"type": "ignore", "pattern": "x" * 2001}).decode(),
        msgspec.json.encode({"type": "inject", "seeds": [{"url": "x"}] * (SEEDS_AT_ONCE + 1)}).decode(),
    ],
)
def test_what_is_no_command_is_damage(text: str) -> None:
    """Stored text is read with care, whoever wrote it."""
    with pytest.raises(StoreDamaged, match="cannot be read"):
        decode(text)


@pytest.mark.parametrize(
    ("selection", "taken"),
    [
        (Selection(), True),
        (Selection(ids=(6, 7)), True),
        (Selection(ids=(8,)), False),
        (Selection(error="http_404"), True),
        (Selection(error="http_40"), False),
        (Selection(status=404), True),
        (Selection(status=500), False),
        (Selection(host="a.test"), True),
        (Selection(host="test"), False),
        (Selection(pattern="/x/"), True),
        (Selection(pattern="^/x/"), False),
        (Selection(pattern="glob:http://a.test/*"), False),
        (Selection(pattern="glob:http://a.test/**"), True),
        (Selection(before=1001), True),
        (Selection(before=1000), False),
        (Selection(since=1000), True),
        (Selection(since=1001), False),
        (Selection(error="http_404", status=404, host="a.test", since=1, before=2000, ids=(7,)), True),
        (Selection(error="http_404", status=404, host="b.test"), False),
    ],
)
def test_a_dead_letter_is_meant_when_all_that_is_said_fits(selection: Selection, taken: bool) -> None:
    assert selection.takes(LETTER, selection.patterns()) is taken


def test_a_letter_without_an_answer_has_no_status() -> None:
    silent = LETTER._replace(status=None, error="connect")
    assert not Selection(status=404).takes(silent, Selection().patterns())
    assert Selection(error="connect").takes(silent, Selection().patterns())


def test_a_pattern_that_cannot_be_read_is_told() -> None:
    with pytest.raises(ConfigError, match="pattern"):
        Selection(pattern="(").patterns()
