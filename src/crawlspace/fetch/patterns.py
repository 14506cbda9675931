"""Patterns for hosts, the keys of tables in the settings: `host`, `*.suffix`, each with or without a port. Pure."""

from __future__ import annotations

from collections.abc import Iterator


def patterns_for(host: str, port: int) -> Iterator[str]:
    """The patterns that fit a host, the most exact first: `a.b:80`, `a.b`, `*.b:80`, `*.b`."""
    labels = host.rstrip(".").split(".")
    for start in range(len(labels)):
        pattern = "*." * bool(start) + ".".join(labels[start:])
        yield f"{pattern}:{port}"
        yield pattern


def pattern_of(key: str) -> str:
    """A key as names are looked for: in lower case, without the dot that may end a name."""
    name, colon, port = key.lower().rpartition(":")
    if colon and port.isdigit():
        return f"{name.rstrip('.')}:{port}"
    return key.lower().rstrip(".")
