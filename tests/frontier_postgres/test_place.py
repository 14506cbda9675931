"""Addresses of shared frontiers: what is read from them, and what is never shown of them."""

from __future__ import annotations

import pytest

from crawlspace.errors import UsageError
from crawlspace.frontier.postgres.place import Place, Shards


@pytest.mark.parametrize(
    ("text", "address", "schema", "shards", "shown"),
    [
        ("postgresql://db.test/web", "postgresql://db.test/web", "crawl", 16, "postgresql://db.test/web"),
        (
            "postgres://me:se%40cret@db.test:5433/web?schema=news&shards=64&sslmode=require",
            "postgres://me:se%40cret@db.test:5433/web?sslmode=require",
            "news",
            64,
            "postgres://me@db.test:5433/web?schema=news&shards=64&sslmode=require",
        ),
        (
            "postgresql:///web?host=/run/pg&password=x&sslpassword=y&user=me",
            "postgresql:///web?host=%2Frun%2Fpg&password=x&sslpassword=y&user=me",
            "crawl",
            16,
            "postgresql:///web?host=%2Frun%2Fpg&user=me",
        ),
    ],
)
def test_an_address_is_read_and_shown_without_its_secrets(
    text: str, address: str, schema: str, shards: int, shown: str
) -> None:
    place = Place.parse(text)
    assert (place.address, place.schema, place.shards, place.shown) == (address, schema, shards, shown)
    again = Place.parse(shown)
    assert (again.schema, again.shards, again.shown) == (schema, shards, shown)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("mysql://db.test/web", "begins with postgresql"),
        ("/var/frontier.db", "begins with postgresql"),
        ("postgresql://db.test/web#news", "no fragment"),
        ("postgresql://db.test/web?schema", "cannot be read"),
        ("postgresql://[::1/web", "cannot be read"),
        ("postgresql://db.test/web?schema=News", "cannot be the schema"),
        ("postgresql://db.test/web?schema=public", "cannot be the schema"),
        ("postgresql://db.test/web?schema=pg_catalog", "cannot be the schema"),
        ('postgresql://db.test/web?schema=a"b', "cannot be the schema"),
        ("postgresql://db.test/web?shards=0", "no power of two"),
        ("postgresql://db.test/web?shards=12", "no power of two"),
        ("postgresql://db.test/web?shards=2048", "no power of two"),
        ("postgresql://db.test/web?shards=²", "no power of two"),
        ("postgresql://db.test/web?shards=-16", "no power of two"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Place.parse(text)


@pytest.mark.parametrize("number", [1, 2, 16, 1024])
def test_shards_are_the_first_bits_of_a_hosts_number(number: int) -> None:
    shards = Shards(number)
    largest = (1 << 48) - 1
    assert (shards.of(0), shards.of(largest)) == (0, number - 1)
    assert shards.of(largest // 2) == max(0, number // 2 - 1)
    assert shards.of_key(largest.to_bytes(6, "big") + bytes(10)) == number - 1
