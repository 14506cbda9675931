"""The address that a form leads to when it is sent as it stands: by GET, nothing typed, no button pressed.

A form asks a question, and a crawler that sends it asks it unbidden; so this is read only when somebody wants it.
Forms that take a password or a file are left alone.

Source: HTML Standard, "constructing the entry list" and "mutate action URL".
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote_plus

from selectolax.lexbor import LexborNode

SELECTOR: Final = "form"
FORMS: Final = 100
"""Forms of a page that are looked at."""
CONTROLS: Final = 100
"""Controls of a form that are looked at; a form with more is left alone."""

_SILENT: Final = frozenset({"submit", "image", "reset", "button"})
_CHECKED: Final = frozenset({"checkbox", "radio"})


def address(form: LexborNode) -> str | None:
    """Where the form leads, as text; None when it is not to be sent, or not by GET."""
    attributes = form.attributes
    if (attributes.get("method") or "get").strip().lower() != "get":
        return None
    controls = form.css("input[name],select[name],textarea[name]")
    if len(controls) > CONTROLS or form.css_first("input[type=password i],input[type=file i]") is not None:
        return None
    pairs: list[tuple[str, str]] = []
    for control in controls:
        if "disabled" not in control.attributes:
            pairs += _pairs(control)
    action = (attributes.get("action") or "").partition("#")[0].partition("?")[0]
    query = "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in pairs)
    return f"{action}?{query}"


def _pairs(control: LexborNode) -> list[tuple[str, str]]:
    attributes = control.attributes
    name = attributes.get("name") or ""
    if not name:
        return []
    if control.tag == "select":
        return [(name, value) for value in _chosen(control)]
    if control.tag == "textarea":
        return [(name, control.text())]
    kind = (attributes.get("type") or "text").strip().lower()
    if kind in _SILENT or (kind in _CHECKED and "checked" not in attributes):
        return []
    return [(name, attributes.get("value") or ("on" if kind in _CHECKED else ""))]


def _chosen(select: LexborNode) -> list[str]:
    """Values of the options that are selected; of a list that shows one, else the first."""
    options = select.css("option")
    chosen = [option for option in options if "selected" in option.attributes]
    if "multiple" not in select.attributes:
        chosen = chosen[-1:] or options[:1]
    return [_value(option) for option in chosen]


def _value(option: LexborNode) -> str:
    value = option.attributes.get("value")
    return " ".join(option.text().split()) if value is None else value


def _quoted(text: str) -> str:
    """Encoded for a query; letters beyond ASCII are left to the page's own encoding."""
    return text if text.isalnum() else "".join(quote_plus(sign) if sign.isascii() else sign for sign in text)
