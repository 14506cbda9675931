"""Logins: named in the settings, read from the environment, each bound to one origin.

A setting never holds a secret, only the name of the environment variable that does. So nothing that shows, stores or
logs settings can give one away, and a secret typed where a name belongs is refused without being repeated.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping

from crawlspace.errors import ConfigError

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f]")


class Login:
    """A user and a password. Its text form shows neither."""

    __slots__ = ("password", "user")

    def __init__(self, user: str, password: str) -> None:
        self.user = user
        self.password = password

    def basic(self) -> str:
        """The value of an Authorization field (RFC 7617, section 2, with UTF-8)."""
        return "Basic " + b64encode(f"{self.user}:{self.password}".encode()).decode("ascii")

    def __repr__(self) -> str:
        return "Login([redacted])"


def check_variables(table: Mapping[str, str], setting: str) -> None:
    """Raise ValueError unless every value is the name of an environment variable; no value is repeated."""
    for value in table.values():
        if not _VARIABLE.fullmatch(value):
            raise ValueError(
                f"{setting} takes the name of an environment variable that holds user:password, "
                "such as SITE_LOGIN, never the secret itself"
            )


def login_from(variable: str, setting: str, environment: Mapping[str, str]) -> Login:
    """The login in an environment variable; raises `ConfigError`, which names the variable alone."""
    text = environment.get(variable)
    if text is None:
        raise ConfigError(f"{setting}: the environment variable {variable} is not set", hint="it holds user:password")
    user, colon, password = text.partition(":")
    if not colon or _UNSAFE.search(text):
        raise ConfigError(f"{setting}: the environment variable {variable} does not hold user:password")
    return Login(user, password)
