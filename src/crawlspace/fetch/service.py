"""A route by a service that fetches or renders pages for us, asked over HTTP.

The service is the operator's choice and may be private; what it is asked to fetch passes the guard first, as on every
route. It looks names up once more for itself, so that what it may reach is its operator's affair too. Redirects that
it followed are not taken from it: the page is then that of another URL, which is asked for as such.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import quote

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from crawlspace.errors import ConfigError
from crawlspace.exchange import FetchError, FetchRequest, FetchResult
from crawlspace.fetch.foreign import Begun, Came, Fields, Means, NotAsked
from crawlspace.fetch.limits import MIB, FetchSettings
from crawlspace.fetch.request import Unsendable, destination_of
from crawlspace.fetch.secrets import check_variables
from crawlspace.policy.routes import RouteBase
from crawlspace.ports import Fetcher
from crawlspace.urls.parser import is_http, resolve, without_credentials

EVERYWHERE = ["0.0.0.0/0", "::/0"]
"""The service's own address is not judged: who runs the crawl has named it."""
_BODY: dict[str, Any] = {
    "url": "{url}",
    "method": "{method}",
    "headers": "{headers}",
    "timeout_ms": "{timeout_ms}",
    "max_bytes": "{max_bytes}",
}
_FIELDS = {"url": "url", "status": "status", "headers": "headers", "body": "body", "body_base64": "body_base64"}
_SPEAKS = {"Content-Type": "application/json", "Accept": "application/json, text/html;q=0.9, */*;q=0.5"}


class ServiceRoute(RouteBase, frozen=True, kw_only=True, tag="service"):
    """A service that fetches or renders for us, asked over HTTP."""

    url: Annotated[str, Meta(min_length=8, max_length=2000)]
    """Its address. `{url}` in it becomes the page's, percent-encoded; so do `{timeout_ms}` and `{max_bytes}`."""
    method: Literal["GET", "POST"] = "POST"
    body: dict[str, Any] = msgspec.field(default_factory=lambda: dict(_BODY))
    """What is posted, as JSON; texts in it are filled in as in `url`, unencoded."""
    secrets: dict[str, str] = msgspec.field(default_factory=dict)
    """Fields of each request to it: from a name to the environment variable that holds the value."""
    answer: Literal["json", "page"] = "json"
    """`json`: an object with the page in it; `page`: its answer is the page."""
    fields: dict[Literal["url", "status", "headers", "body", "body_base64"], str] = msgspec.field(
        default_factory=dict
    )
    """Where a JSON answer has these, if not under their own names: `solution.response`."""
    max_answer: Annotated[int, Meta(ge=1024, le=1024 * MIB)] = 32 * MIB
    """Bytes of its answer; a longer one is none."""

    def __post_init__(self) -> None:
        check_variables(self.secrets, "secrets")
        try:
            destination_of(_filled(self.url, dict.fromkeys(_NAMES, "x")))
        except Unsendable as unsendable:
            raise ValueError(f"url: {unsendable}") from None


_NAMES = ("url", "method", "headers", "timeout_ms", "max_bytes")


def service_limits(route: ServiceRoute, limits: FetchSettings) -> FetchSettings:
    """Limits of the requests to a service: as slow and as large as the route allows."""
    seconds = route.seconds(limits.timeout)
    return replace(
        limits,
        timeout=seconds,
        idle_timeout=seconds,
        min_rate=0,
        max_body=route.max_answer,
        max_wire=route.max_answer,
        types=[],
        cookies=False,
        auth={},
    )


class ServiceFetcher:
    """Asks a service for pages; `ports.Fetcher`. Raises `ConfigError` for a secret that is not in the environment."""

    def __init__(self, route: ServiceRoute, client: Fetcher, means: Means) -> None:
        self._route = route
        self._client = client
        self._gate = means.gate
        self._limits = means.limits
        self._clock = means.clock
        self._seconds = route.seconds(means.limits.timeout)
        self._fields: dict[str, str] = {**_FIELDS, **{str(name): path for name, path in route.fields.items()}}
        self._headers = (*_SPEAKS.items(), *_secrets(route.secrets, means.environment))

    async def fetch(self, request: FetchRequest) -> FetchResult:
        """See `ports.Fetcher`."""
        begun = Begun.now(request, self._clock)
        try:
            if request.method not in ("GET", "HEAD"):
                raise NotAsked(FetchError.LOCAL, f"a service is not asked to {request.method}")
            await self._gate.pass_through(request.url)
            answer = await self._client.fetch(self._question(request))
            return self._read(begun, answer)
        except NotAsked as why:
            return begun.failed(why.error, why.detail)

    async def close(self) -> None:
        """See `ports.Fetcher`."""
        await self._client.close()
        await self._gate.resolver.close()

    def _question(self, request: FetchRequest) -> FetchRequest:
        values: dict[str, Any] = {
            "url": request.url,
            "method": request.method,
            "headers": dict(request.headers),
            "timeout_ms": round(self._seconds * 1000),
            "max_bytes": self._limits.max_body,
        }
        encoded = {name: quote(str(value), safe="") for name, value in values.items()}
        url = _filled(self._route.url, encoded)
        if self._route.method == "GET":
            return FetchRequest(url, headers=self._headers[1:])
        body = msgspec.json.encode(_filled_in(self._route.body, values))
        return FetchRequest(url, "POST", body, self._headers)

    def _read(self, begun: Begun, answer: FetchResult) -> FetchResult:
        if answer.status == 0 or answer.error is not None:
            raise NotAsked(answer.error or FetchError.PROTOCOL, f"the service: {answer.detail or answer.error}")
        if answer.truncated is not None:
            raise NotAsked(FetchError.PROTOCOL, f"the service's answer is longer than {self._route.max_answer} bytes")
        if answer.status != 200:
            told = answer.body[:200].decode("utf-8", "replace")
            raise NotAsked(FetchError.PROTOCOL, f"the service answered {answer.status}: {told}")
        if self._route.answer == "page":
            kind = [("Content-Type", answer.headers.get("content-type"))]
            return begun.answered(self._limits, Came(200, kind, answer.body))
        return self._from_json(begun, answer.body)

    def _from_json(self, begun: Begun, text: bytes) -> FetchResult:
        try:
            said = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise NotAsked(FetchError.PROTOCOL, f"the service's answer is no JSON: {error}") from None
        final = self._find(said, "url")
        if isinstance(final, str) and (target := _elsewhere(begun.request.url, final)):
            return begun.moved(self._limits, target)
        status = self._find(said, "status")
        status = 200 if status is None else status
        if isinstance(status, bool) or not isinstance(status, int) or not 200 <= status <= 599:
            raise NotAsked(FetchError.PROTOCOL, f"the service names no status of a page: {status!r:.50}")
        fields = _read_fields(self._find(said, "headers"))
        coded = self._find(said, "body_base64")
        if isinstance(coded, str):
            try:
                return begun.answered(self._limits, Came(status, fields, base64.b64decode(coded, validate=True)))
            except binascii.Error:
                raise NotAsked(FetchError.PROTOCOL, "the service's body_base64 is no base64") from None
        body = self._find(said, "body")
        if not isinstance(body, str):
            raise NotAsked(FetchError.PROTOCOL, "the service's answer has no body")
        payload = body.encode("utf-8", "replace")
        return begun.answered(self._limits, Came(status, _as_utf8(fields), payload))

    def _find(self, said: Any, name: str) -> Any:
        for part in self._fields[name].split("."):
            said = said.get(part) if isinstance(said, dict) else None
        return said


def _secrets(table: Mapping[str, str], environment: Mapping[str, str]) -> Fields:
    for name, variable in table.items():
        if variable not in environment:
            raise ConfigError(
                f"secrets: the environment variable {variable} is not set", hint=f"it holds the field {name}"
            )
    return [(name, environment[variable]) for name, variable in table.items()]


def _filled(text: str, values: Mapping[str, Any]) -> str:
    for name in _NAMES:
        text = text.replace(f"{{{name}}}", str(values[name]))
    return text


def _filled_in(template: Any, values: Mapping[str, Any]) -> Any:
    """A template with its places filled: a text that is nothing but a place becomes the value itself."""
    if isinstance(template, dict):
        return {key: _filled_in(value, values) for key, value in template.items()}
    if isinstance(template, list):
        return [_filled_in(value, values) for value in template]
    if not isinstance(template, str):
        return template
    whole = template[1:-1]
    if template == f"{{{whole}}}" and whole in values:
        return values[whole]
    return _filled(template, values)


def _elsewhere(asked: str, final: str) -> str | None:
    """The address of the page that came instead, if it is another."""
    parsed = resolve(final)
    if parsed is None or not is_http(parsed):
        return None
    came = without_credentials(parsed).partition("#")[0]
    return None if came == asked else came


def _read_fields(said: Any) -> list[tuple[str, str]]:
    """Fields from an object of texts or lists of texts, or a list of pairs."""
    pairs: list[Any] = list(said.items()) if isinstance(said, dict) else said if isinstance(said, list) else []
    found: list[tuple[str, str]] = []
    for pair in pairs:
        if isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str):
            values = pair[1] if isinstance(pair[1], list) else [pair[1]]
            found += [(pair[0], value) for value in values if isinstance(value, str)]
    return found


def _as_utf8(fields: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The fields of a body that came as text: whatever it was in, it is in UTF-8 now."""
    kinds = [value for name, value in fields if name.lower() == "content-type"]
    essence = kinds[0].partition(";")[0].strip() if kinds else "text/html"
    rest = [pair for pair in fields if pair[0].lower() != "content-type"]
    return [*rest, ("Content-Type", f"{essence}; charset=utf-8")]
