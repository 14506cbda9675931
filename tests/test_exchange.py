"""The values between the network, the archive and those who read pages."""

from __future__ import annotations

from crawlspace.exchange import Headers


def test_headers_keep_their_order_and_compare_without_case() -> None:
    headers = Headers(((b"Set-Cookie", b"a=1"), (b"set-cookie", b"b=2"), (b"X", b"\xe9")))
    assert headers.get("set-cookie") == "a=1"
    assert headers.all("set-cookie") == ["a=1", "b=2"]
    assert headers.get("x") == "\u00e9"
    assert headers.get("missing", "none") == "none"
    assert headers.all("missing") == []
    assert Headers(((b"X", b"1"), (b"Y", b"2"))).all("x") == ["1"]


def test_headers_are_values() -> None:
    one, same, other = Headers(((b"A", b"1"),)), Headers(((b"A", b"1"),)), Headers(((b"A", b"2"),))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != "A: 1"
    assert "A" in repr(one)
