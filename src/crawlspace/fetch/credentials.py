"""What goes along with a request because of where it goes: logins and cookies, each to its own origin alone.

A request's own fields are not looked at for secrets: whoever gives it some names its URL in the same breath.
"""

from __future__ import annotations

from collections.abc import Mapping

from crawlspace.clock import Clock
from crawlspace.exchange import FetchRequest, Headers
from crawlspace.fetch.cookies import Jar
from crawlspace.fetch.limits import FetchSettings
from crawlspace.fetch.request import NO_FIELDS, Destination, Origin, origin_from
from crawlspace.fetch.secrets import login_from


class Credentials:
    """Logins by origin and the jar of cookies; raises `ConfigError` for a login that is not in the environment."""

    def __init__(self, settings: FetchSettings, environment: Mapping[str, str], clock: Clock) -> None:
        self._basic: Mapping[Origin, str] = {
            origin_from(text): login_from(variable, "fetch.auth", environment).basic()
            for text, variable in settings.auth.items()
        }
        self._jar = Jar() if settings.cookies else None
        self._clock = clock

    def fields(self, request: FetchRequest, to: Destination) -> Mapping[str, str]:
        """Fields that this request must carry; those of the request itself win, cookies name by name."""
        if not self._basic and self._jar is None:
            return NO_FIELDS
        own = {name.lower(): value for name, value in request.headers}
        fields: dict[str, str] = {}
        basic = self._basic.get(to.origin)
        if basic is not None and "authorization" not in own:
            fields["Authorization"] = basic
        kept = self._jar.field(to, self._clock.now()) if self._jar is not None else ""
        if kept:
            fields["Cookie"] = _merged(own.get("cookie", ""), kept)
        return fields

    def learn(self, source: Destination, headers: Headers) -> None:
        """Keep the cookies of an answer, where cookies are kept."""
        if self._jar is not None and (lines := headers.all("set-cookie")):
            self._jar.keep(lines, source, self._clock.now())


def _merged(own: str, kept: str) -> str:
    if not own:
        return kept
    names = {pair.partition("=")[0] for pair in own.split("; ")}
    return "; ".join([own, *(pair for pair in kept.split("; ") if pair.partition("=")[0] not in names)])
