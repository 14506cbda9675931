"""A form that is sent as it stands leads to one address."""

from __future__ import annotations

import pytest

from crawlspace.pages.forms import CONTROLS, SELECTOR, address
from crawlspace.pages.tree import parse


def leads(form: str) -> str | None:
    (node,) = parse(form.encode()).document.css(SELECTOR)
    return address(node)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ('<form action="/s?old=1#x"><input name=q value="a b&c"></form>', "/s?q=a+b%26c"),
        ("<form><input name=q></form>", "?q="),
        ('<form method=" GET " action="/s"></form>', "/s?"),
        ('<form method="post" action="/s"></form>', None),
        ('<form method="dialog"></form>', None),
        ('<form><input type="Password" name=p></form>', None),
        ("<form><input type=file name=f></form>", None),
        ("<form><input type=submit name=a value=b><input type=image name=c><button name=d value=e></form>", "?"),
        ("<form><input type=checkbox name=a checked><input type=checkbox name=b></form>", "?a=on"),
        ("<form><input type=radio name=a value=1><input type=radio name=a value=2 checked></form>", "?a=2"),
        ("<form><input name=a value=1 disabled><input name='' value=2><input value=3></form>", "?"),
        ("<form><input type=hidden name=lang value=bücher></form>", "?lang=bücher"),
        ("<form><input type=hidden name=lang value='ü+'></form>", "?lang=ü%2B"),
        ("<form><textarea name=t>two words</textarea></form>", "?t=two+words"),
        ("<form><select name=s><option value=1>a<option value=2 selected>b</select></form>", "?s=2"),
        ("<form><select name=s><option> a  b <option>c</select></form>", "?s=a+b"),
        ("<form><select name=s></select></form>", "?"),
        ("<form><select name=s multiple><option>a<option selected>b<option selected>c</select></form>", "?s=b&s=c"),
        ("<form><select name=s multiple><option>a</select></form>", "?"),
    ],
)
def test_the_entries_are_those_of_a_form_that_nobody_touched(form: str, expected: str | None) -> None:
    assert leads(form) == expected


def test_a_form_with_too_many_controls_is_left_alone() -> None:
    assert leads(f"<form>{'<input name=a>' * CONTROLS}</form>") is not None
    assert leads(f"<form>{'<input name=a>' * (CONTROLS + 1)}</form>") is None
