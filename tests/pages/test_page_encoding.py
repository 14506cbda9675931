"""The encoding of a page is found in the order of the standards, and its text is what browsers show."""

from __future__ import annotations

import base64
import codecs
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.exchange import Headers
from crawlspace.pages import encoding as encoding_module
from crawlspace.pages.encoding import LATE, as_utf8, declared, decode, encoding_of, sniff

DATA = Path(__file__).parent.parent / "data" / "encoding"
HTML = Headers(((b"content-type", b"text/html"),))
NAMES = (
    *("utf-8", "ibm866", "koi8-r", "koi8-u", "macintosh", "x-mac-cyrillic", "windows-874", "x-user-defined"),
    *(f"iso-8859-{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
    *(f"windows-{number}" for number in range(1250, 1259)),
    *("iso-8859-8-i", "gbk", "gb18030", "big5", "euc-jp", "iso-2022-jp", "shift_jis", "euc-kr", "replacement"),
    *("utf-16be", "utf-16le"),
)
"""The forty encodings of the Encoding Standard."""


def with_charset(label: str, essence: str = "text/html") -> Headers:
    return Headers(((b"content-type", f"{essence}; charset={label}".encode()),))


@pytest.mark.parametrize("row", json.loads((DATA / "html-prescan.json").read_text()))
def test_a_declaration_is_found_as_the_html_standard_has_it(row: dict[str, str]) -> None:
    body = row["html"].encode("latin-1") if "html" in row else base64.b64decode(row["html_b64"])
    assert sniff(body, HTML) == row["encoding"]


@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        (b"\xef\xbb\xbf<p>", with_charset("windows-1251"), "utf-8"),
        (b"\xff\xfe<\0p\0", with_charset("utf-8"), "utf-16le"),
        (b"\xfe\xff\0<\0p", HTML, "utf-16be"),
        (b"<meta charset=gbk>", with_charset("utf-8"), "utf-8"),
        (b"<meta charset=gbk>", with_charset("no-such-thing"), "gbk"),
        (b"<meta charset=gbk>", HTML, "gbk"),
        (b'<HTML><META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=gbk">', HTML, "gbk"),
        (b"<meta charset=utf-16>", HTML, "utf-8"),
        (b"<meta charset=x-user-defined>", HTML, "windows-1252"),
        (b"<p>", with_charset("utf-16le"), "utf-16le"),
        (b"<p>", HTML, "windows-1252"),
        (b"", Headers(), "windows-1252"),
        (b"<html>", Headers(((b"content-type", b"application/xhtml+xml"),)), "utf-8"),
        (b"<?xml version='1.0' encoding='iso-8859-2'?><html>", HTML, "iso-8859-2"),
        (b"<?xml version='1.0' encoding='utf-16'?><html>", HTML, "utf-8"),
        (b"<?xml version='1.0'?><html>", HTML, "windows-1252"),
        ("<?xml version='1.0'?>".encode("utf-16-le"), HTML, "utf-16le"),
        ("<?xml version='1.0'?>".encode("utf-16-be"), HTML, "utf-16be"),
        (b"< p><!doctype html></ x><meta charset=gbk>", HTML, "gbk"),
        (b"<!doctype html", HTML, "windows-1252"),
        (b"<!-- <meta charset=gbk>", HTML, "windows-1252"),
        (b"<meta http-equiv=content-type content='text/html; charset'>", HTML, "windows-1252"),
        (b"<meta name=x content='text/html; charset=gbk'>", HTML, "windows-1252"),
        (b"x" * 2000 + b"<meta charset=gbk>", HTML, "gbk"),
        (b"x" * 2000 + b"<meta name=charset>", HTML, "windows-1252"),
        (b"x" * LATE + b"<meta charset=gbk>", HTML, "windows-1252"),
    ],
)
def test_mark_then_header_then_declaration_then_the_default(body: bytes, headers: Headers, expected: str) -> None:
    assert sniff(body, headers) == expected


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        (" UTF8 ", "utf-8"),
        ("latin1", "windows-1252"),
        ("ISO-8859-1", "windows-1252"),
        ("ks_c_5601-1987", "euc-kr"),
        ("hz-gb-2312", "replacement"),
        ("utf-7", None),
        ("", None),
    ],
)
def test_a_label_names_what_browsers_mean_by_it(label: str, expected: str | None) -> None:
    assert encoding_of(label) == expected


@pytest.mark.parametrize(
    ("body", "encoding", "expected"),
    [
        (b"\xef\xbb\xbfcaf\xe9", "utf-8", "caf\ufffd"),
        (b"caf\xe9 \x80\x81", "windows-1252", "café €\x81"),
        (b"\xa1", "windows-874", "ก"),
        (b"\xff", "windows-874", "\ufffd"),
        (b"\xcf\xf0\xe8\xe2\xe5\xf2", "windows-1251", "Привет"),
        (b"\xe9", "x-user-defined", "\uf7e9"),
        (b"\xc4\xe3\xba\xc3\x81\x30\x81\x30", "gbk", "你好\x80"),
        (b"\x1b$B$3\x1b(B", "iso-2022-jp", "こ"),
        (b"\x83\x65", "shift_jis", "テ"),
        (b"anything", "replacement", "\ufffd"),
        (b"", "replacement", ""),
        (codecs.BOM_UTF16_LE + "ж".encode("utf-16-le"), "utf-16le", "ж"),
    ],
)
def test_text_is_what_browsers_show(body: bytes, encoding: str, expected: str) -> None:
    assert decode(body, encoding) == expected
    if encoding != "utf-8":
        assert as_utf8(body, encoding).decode() == expected


def test_bytes_that_are_no_utf8_stay_where_it_is_utf8_already() -> None:
    assert as_utf8(b"\xef\xbb\xbf\xff", "utf-8") == b"\xff"


@given(st.sampled_from(NAMES), st.binary(max_size=200))
def test_every_encoding_decodes_every_body(encoding: str, body: bytes) -> None:
    assert encoding_of(encoding) == encoding
    assert as_utf8(body, encoding).decode("utf-8", "replace").removeprefix("\ufeff") == decode(body, encoding)


@given(st.text("abc<>=-!?/'\" \nmetacharsethttp-equivcontentutf8", max_size=300))
def test_no_start_of_a_page_is_too_odd_to_be_searched(text: str) -> None:
    assert declared(text.encode()) in (None, *NAMES)


TAGS = (
    *(
        '<html lang="de">',
        "<head>",
        "<br/>",
        '<p a="b" c-d=""/>',
        '<!DOCTYPE html "x>y">',
        "<?xml x?>",
        "</head >",
        "<p a='b\">",
    ),
    *(
        "<!-- <meta charset=utf-8> -->",
        "<!-->",
        "<!--",
        "<menu>",
        '<p a="<">',
        '<p a=">">',
        "<p a=b>",
        '<p"a=">',
        "<",
        "</",
        "x ",
    ),
    *(
        '<meta charset="utf-8">',
        '<meta name="x" content="y"/>',
        "<META CHARSET='koi8-r' >",
        '<META CHARSET="koi8-r">',
        '<meta content="x" charset="no-such" charset="gbk">',
        '<meta\nb="charset=gbk">',
        '<p a="',
    ),
    '<meta http-equiv="Content-Type" content="text/html; charset=euc-jp" />',
)


@given(st.lists(st.sampled_from(TAGS), max_size=12))
def test_what_is_passed_over_in_one_go_holds_no_declaration(tags: list[str]) -> None:
    head = "".join(tags).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding_module, "_behind_plain", lambda _head, position: position)
        patch.setattr(encoding_module, "_PLAIN_META", re.compile(rb"(?!)"))
        expected = declared(head)
    assert declared(head) == expected
