"""What parsers yield becomes records with keys and digests."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import attrs
import msgspec
import pydantic
import pytest

from crawlspace.parsers import PAGE_KEY, Item, Record
from crawlspace.parsers import records as made
from crawlspace.parsers.records import Keying, Unfit, records_of

BY_SKU = Keying(("sku",))


@dataclasses.dataclass
class Plain:
    sku: str
    price: int


@attrs.define
class Attrs:
    price: int
    sku: str


class Model(pydantic.BaseModel):
    sku: str
    price: int


class Struct(msgspec.Struct):
    price: int
    sku: str


def one(given: object, keying: Keying = BY_SKU, host: str = "a.test") -> Record:
    (record,) = records_of(given, keying, host)
    return record


@pytest.mark.parametrize(
    "given",
    [
        {"sku": "x", "price": 3},
        {"price": 3, "sku": "x"},
        Plain("x", 3),
        Attrs(3, "x"),
        Model(sku="x", price=3),
        Struct(3, "x"),
        Item(Struct(3, "x")),
        [Plain("x", 3)],
        iter([Attrs(3, "x")]),
    ],
    ids=["dict", "other order", "dataclass", "attrs", "pydantic", "msgspec", "item", "list", "iterator"],
)
def test_a_record_is_the_same_whatever_type_it_came_as(given: object) -> None:
    record = one(given)
    assert record.data == b'{"price":3,"sku":"x"}'
    assert (
        record.digest
        == hashlib.sha256(
            json.dumps({"price": 3, "sku": "x"}, sort_keys=True, separators=(",", ":")).encode()
        ).hexdigest()
    )


def test_nothing_is_no_record_and_a_generator_is_many() -> None:
    def several() -> Iterator[dict[str, str]]:
        yield {"sku": "1"}
        yield {"sku": "2"}

    assert records_of(None, BY_SKU, "") == ()
    assert len(records_of(several(), BY_SKU, "")) == 2


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ({"sku": "1", "price": 3}, {"sku": "1", "price": 4}, True),
        ({"sku": "1"}, {"sku": "2"}, False),
        ({"sku": "1", "language": "de"}, {"sku": "1", "language": "en"}, False),
        ({"sku": "1", "size": "L"}, {"sku": "1", "size": "M"}, False),
        ({"sku": "1", "colour": "red"}, {"sku": "1", "colour": "blue"}, False),
        ({"sku": "1", "colour": None}, {"sku": "1"}, True),
    ],
)
def test_declared_fields_are_the_key_and_versions_of_a_thing_stay_apart(
    first: dict[str, Any], second: dict[str, Any], same: bool
) -> None:
    assert (one(first).key == one(second).key) is same


def test_equal_keys_of_two_hosts_are_two_things_unless_the_parser_says_otherwise() -> None:
    everywhere = Keying(("isbn",), per_host=False)
    book = {"isbn": "1"}
    assert one(book, everywhere, "a.test").key == one(book, everywhere, "b.test").key
    assert one({"sku": "1"}, host="a.test").key != one({"sku": "1"}, host="b.test").key
    assert one(Item(book, key="k"), everywhere, "a.test").key == one(Item(book, key="k"), everywhere, "b.test").key


def test_without_a_key_the_text_speaks_and_what_changes_on_every_visit_does_not() -> None:
    by_text = Keying()
    page = "A text about something that nobody has ever seen before"
    assert (
        one({"text": f"{page}, 3 minutes ago"}, by_text).key == one({"text": f"{page},  5 minutes ago"}, by_text).key
    )
    assert one({"text": page}, by_text).key != one({"text": page + " now"}, by_text).key
    assert one({"n": [1, {"b": 2}], "x": None}, by_text).key != one({"n": [1, {"b": 3}]}, by_text).key


def test_significant_fields_and_versions_are_never_folded_away_by_the_text() -> None:
    by_text = Keying(significant=("updated",))
    first, second = {"text": "abc", "updated": "3 minutes ago"}, {"text": "abc", "updated": "5 minutes ago"}
    assert one(first, Keying()).key == one(second, Keying()).key
    assert one(first, by_text).key != one(second, by_text).key


def test_a_page_of_one_record_has_its_url_for_a_key() -> None:
    assert one({"a": 1}, Keying((PAGE_KEY,))).key is None


def test_half_characters_are_replaced_and_names_become_texts() -> None:
    record = one({"sku": "\ud800x", "é": ["\udfff", 1], 5: True}, Keying((PAGE_KEY,)))
    assert json.loads(record.data) == {"sku": "?x", "é": ["?", 1], "5": True}


def nested(depth: int) -> dict[str, Any]:
    data: dict[str, Any] = {"x": "\ud800"}
    for _ in range(depth):
        data = {"x": data}
    return data


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"price": 3}, "has no 'sku'"),
        ({"sku": ""}, "has no 'sku'"),
        ("text", "no named fields"),
        ([3], "no named fields"),
        ({"sku": object()}, "cannot be JSON"),
        (nested(150), "nested more than"),
    ],
)
def test_what_makes_no_record_is_told(given: object, why: str) -> None:
    with pytest.raises(Unfit, match=why):
        one(given)


def test_records_are_bounded_in_size_and_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "RECORD_LIMIT", 10)
    with pytest.raises(Unfit, match="bytes as JSON"):
        one({"sku": "x" * 20})
    monkeypatch.undo()
    monkeypatch.setattr(made, "RECORDS_LIMIT", 3)
    with pytest.raises(Unfit, match="more than 3"):
        records_of(({"sku": str(n)} for n in range(10**9)), Keying((PAGE_KEY,)), "")
