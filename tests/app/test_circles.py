"""How often Python looks for circles of objects."""

from __future__ import annotations

import gc

import pytest

from crawlspace.app.circles import NEW_OBJECTS, seldom_looked_for


def test_circles_are_looked_for_seldom_within_and_as_often_as_before_behind() -> None:
    usual = gc.get_threshold()
    with seldom_looked_for():
        within = gc.get_threshold()
    assert (within, gc.get_threshold()) == ((NEW_OBJECTS, *usual[1:]), usual)


def test_a_failure_leaves_it_as_it_was() -> None:
    usual = gc.get_threshold()
    with pytest.raises(KeyError), seldom_looked_for():
        raise KeyError
    assert gc.get_threshold() == usual
