"""XML as it is served is read past its errors, alike in any pieces."""

from __future__ import annotations

import pytest

from crawlspace.pages.markup import HELD, MarkupReader, attributes_of, resolved


class Heard:
    """Everything that was told, text joined."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def opened(self, name: str, attributes: str) -> None:
        self.told.append(f"<{name}{attributes}>")

    def closed(self, name: str) -> None:
        self.told.append(f"</{name}>")

    def text(self, text: str) -> None:
        if self.told and self.told[-1].startswith("'"):
            self.told[-1] += text
        else:
            self.told.append(f"'{text}")


def heard(text: str, size: int = 1000) -> tuple[list[str], str, bool]:
    listener = Heard()
    reader = MarkupReader(listener)
    for start in range(0, len(text), size):
        reader.feed(text[start : start + size])
    whole = reader.close()
    return [told.removeprefix("'") for told in listener.told], reader.problem, whole


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<a>b</a>", ["<a>", "b", "</a>"]),
        ("<a/>b<", ["<a/>", "</a>", "b"]),
        ("<a  b = 'c'/>", ["<a  b = 'c'/>", "</a>"]),
        ("<a b='x>y'>z<", ["<a b='x>y'>", "z"]),
        ('<a b="x>y>z">z<', ['<a b="x>y>z">', "z"]),
        ("<a><!-- <b> --><c></a>", ["<a>", "<c>", "</a>"]),
        ("<?xml version='1.0'?><a>", ["<a>"]),
        ("<a><![CDATA[<b>&amp;]]]></a>", ["<a>", "<b>&amp;]", "</a>"]),
        ("<a><![CDATA[]]></a>", ["<a>", "</a>"]),
        ("< >x</ >y<", ["xy"]),
        ("<>x<", ["x"]),
        ("<!----><a>", ["<a>"]),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_names_text_and_attributes_are_told_in_order(text: str, told: list[str], size: int) -> None:
    assert heard(text, size) == (told, "", True)


@pytest.mark.parametrize("text", ["<!DOCTYPE a>", "<a><!ENTITY b 'c'>", "<![INCLUDE[", "<!"])
def test_a_declaration_ends_the_reading(text: str) -> None:
    problem = "" if text == "<!" else "a document type declaration"
    assert heard(text)[1] == problem
    assert heard(text + "<b>" * (len(text) > 2))[0] == heard(text)[0]


@pytest.mark.parametrize(
    ("text", "whole"),
    [("<a>b", False), ("<a>b<", True), ("<a>b</a", True), ("<a><!-- b", True), ("", True), ("<!D", True)],
)
def test_it_is_known_whether_the_end_cut_through_text(text: str, whole: bool) -> None:
    assert heard(text)[2] is whole


def test_a_tag_without_an_end_ends_the_reading_and_long_text_comes_in_parts() -> None:
    assert heard("<a " + "x" * HELD, 10_000)[1] == f"a tag has no end within {HELD} characters"
    told, problem, _ = heard("<a>" + "x" * (3 * HELD) + "<", 10_000)
    assert (told, problem) == (["<a>", "x" * (3 * HELD)], "")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("a&amp;b&lt;&gt;&quot;&apos;", "a&b<>\"'"),
        ("&#65;&#x42;&#x1F600;", "AB\U0001f600"),
        ("&nbsp;&x;&amp &", "&nbsp;&x;&amp &"),
        ("&#0;&#xD800;&#x110000;&#99999999;", "\ufffd\ufffd\ufffd&#99999999;"),
        ("&amp;amp;", "&amp;"),
    ],
)
def test_only_the_references_that_xml_has_are_resolved_and_once(text: str, meant: str) -> None:
    assert resolved(text) == meant


def test_attributes_are_read_by_name() -> None:
    assert attributes_of(""" a='1' b = "&lt;2" c=3 d:e='' f /""") == {"a": "1", "b": "<2", "d:e": ""}
