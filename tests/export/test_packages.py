"""A package as readers other than the standard library's see it."""

from __future__ import annotations

from io import BytesIO
from struct import unpack_from
from zipfile import ZipFile

from crawlspace.exports.wacz import About, Entry, Package


def test_the_fields_before_each_file_are_as_long_as_the_list_at_the_end_says() -> None:
    """ReplayWeb.page finds a file's bytes by that; else it reads twenty bytes beside them, and shows nothing."""
    out = BytesIO()
    package = Package(out, About("t", "s", "2026-01-01T00:00:00Z"), 1_700_000_000_000)
    with package.archive() as file:
        file.write(b"records")
    package.index([b"test,a)/ 20260101000000 {}\n"])
    package.pages([Entry("1", "http://a.test/", "2026-01-01T00:00:00Z", "one")])
    package.close()
    listed = ZipFile(out).infolist()
    assert len(listed) == 6
    for info in listed:
        before = unpack_from("<HH", out.getvalue(), info.header_offset + 26)
        assert before == (len(info.filename), len(info.extra))
