"""Pages that a service fetches for us: its contract, and what it may not do."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from crawlspace.app.routes import route_fetchers
from crawlspace.clock import SystemClock
from crawlspace.errors import ConfigError
from crawlspace.exchange import FetchError, FetchRequest, FetchResult, Truncated
from crawlspace.settings import convert
from crawlspace.states import UrlState

from .conftest import Answer, Asked, Doors, agent

HOME = "http://a.test/"
PAGE = "http://a.test/page?q=1&r=2"
JSON = {"Content-Type": "application/json"}


def ask(web: Doors, route: dict[str, Any], request: FetchRequest | None = None, **settings: Any) -> FetchResult:
    """One request by a service at `/fetch` of the small web."""
    given = {"kind": "service", "url": f"http://127.0.0.1:{web.port}/fetch", **route}
    network = {"resolve": {"a.test:80": "93.184.215.14:80", "private.test:80": "10.0.0.1:80"}, **settings}
    whole = convert({"contact": "tests@crawlspace.test", "network": network, "routes": {"render": given}}, "test")

    async def main() -> FetchResult:
        (fetcher,) = route_fetchers(whole, SystemClock()).values()
        try:
            return await fetcher.fetch(request or FetchRequest(PAGE))
        finally:
            await fetcher.close()

    return asyncio.run(main())


def says(web: Doors, *, status: int = 200, text: str | None = None, **said: Any) -> None:
    body = json.dumps(said) if text is None else text
    web.doors[f"http://127.0.0.1:{web.port}/fetch"] = lambda _: Answer(body, status, JSON)


def test_the_contract_is_json_both_ways(web: Doors) -> None:
    says(
        web,
        url=PAGE + "#top",
        status=200,
        headers={
            "content-type": "text/html; charset=latin-1",
            "Content-Encoding": "gzip",
            "Set-Cookie": ["a=1", "b=2"],
        },
        body="<p>größer</p>",
    )
    result = ask(web, {}, FetchRequest(PAGE, headers=(("If-None-Match", '"x"'),)))
    (asked,) = web.asked
    assert json.loads(asked.body) == {
        "url": PAGE,
        "method": "GET",
        "headers": {"If-None-Match": '"x"'},
        "timeout_ms": 30_000,
        "max_bytes": 10_485_760,
    }
    assert (result.error, result.status, result.url) == (None, 200, PAGE)
    assert result.body.decode() == "<p>größer</p>"
    assert result.headers.get("content-type") == "text/html; charset=utf-8"
    assert result.headers.all("set-cookie") == ["a=1", "b=2"]
    assert not result.headers.get("content-encoding")
    assert result.request_head == b"GET /page?q=1&r=2 HTTP/1.1\r\nHost: a.test\r\n\r\n"


def test_bytes_come_as_base64_and_are_what_they_were(web: Doors) -> None:
    data = bytes(range(256))
    says(web, headers=[["Content-Type", "image/png"], "odd", [1, 2]], body_base64=base64.b64encode(data).decode())
    result = ask(web, {})
    assert (result.status, result.body) == (200, data)
    assert result.headers.get("content-type") == "image/png"


def test_other_services_are_asked_by_a_template_and_read_by_paths(
    web: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOLVER_KEY", "Bearer s3cret")
    says(web, solution={"status": 404, "headers": {}, "response": "gone"})
    route = {
        "body": {"cmd": "request.get", "url": "{url}", "max": ["{timeout_ms}", 1, "at {url}"]},
        "fields": {"status": "solution.status", "headers": "solution.headers", "body": "solution.response"},
        "secrets": {"Authorization": "SOLVER_KEY"},
        "timeout": 5,
    }
    result = ask(web, route)
    (asked,) = web.asked
    assert json.loads(asked.body) == {"cmd": "request.get", "url": PAGE, "max": [5000, 1, f"at {PAGE}"]}
    assert asked.headers["authorization"] == "Bearer s3cret"
    assert (result.status, result.body) == (404, b"gone")
    assert b"s3cret" not in result.request_head + result.response_head


def test_a_page_may_be_the_whole_answer_of_a_get(web: Doors) -> None:
    where = f"http://127.0.0.1:{web.port}/render?url={{url}}"
    web.doors[f"http://127.0.0.1:{web.port}/render?url=http%3A%2F%2Fa.test%2Fpage%3Fq%3D1%26r%3D2"] = lambda asked: (
        Answer(f"<p>{asked.method}</p>")
    )
    result = ask(web, {"url": where, "method": "GET", "answer": "page"})
    assert (result.status, result.body) == (200, b"<p>GET</p>")


@pytest.mark.parametrize(
    ("said", "error", "detail"),
    [
        (
            {"status": 500, "text": "out of browsers"},
            FetchError.PROTOCOL,
            "the service answered 500: out of browsers",
        ),
        ({"text": "<html>"}, FetchError.PROTOCOL, "is no JSON"),
        ({"text": "[" * 4000}, FetchError.PROTOCOL, "is no JSON"),
        ({"text": "[]"}, FetchError.PROTOCOL, "has no body"),
        ({"headers": 3}, FetchError.PROTOCOL, "has no body"),
        ({"body_base64": "*"}, FetchError.PROTOCOL, "is no base64"),
        ({"text": '{"body": "x", "status": "200"}'}, FetchError.PROTOCOL, "names no status"),
        ({"text": '{"body": "x", "status": true}'}, FetchError.PROTOCOL, "names no status"),
        ({"text": '{"body": "x", "status": 99999}'}, FetchError.PROTOCOL, "names no status"),
        ({"body": "x" * 5000}, FetchError.PROTOCOL, "longer than 4096 bytes"),
    ],
)
def test_what_is_no_answer_is_a_failure_of_the_route(
    web: Doors, said: dict[str, Any], error: FetchError, detail: str
) -> None:
    says(web, **said)
    result = ask(web, {"max_answer": 4096})
    assert (result.status, result.error) == (0, error)
    assert detail in result.detail


def test_a_service_that_is_down_is_a_failure_of_the_route(web: Doors) -> None:
    result = ask(web, {"url": "http://127.0.0.1:9/fetch"})
    assert (result.status, result.error) == (0, FetchError.CONNECT)


def test_nothing_in_an_answer_ends_a_line_of_its_head(web: Doors) -> None:
    says(web, headers={"X-A": "1\r\nSet-Cookie: evil=1", "X\r\nB": "2", "": "3"}, body="x")
    result = ask(web, {})
    assert not result.headers.all("set-cookie")
    assert result.headers.get("x-a") == "1Set-Cookie: evil=1"


def test_a_page_is_cut_at_the_limits_of_all_pages(web: Doors) -> None:
    says(web, body="x" * 5000)
    settings = convert(
        {
            "contact": "x",
            "fetch": {"max_body": 1000, "max_wire": 100_000},
            "network": {"resolve": {"a.test:80": "93.184.215.14:80"}},
            "routes": {"render": {"kind": "service", "url": f"http://127.0.0.1:{web.port}/fetch"}},
        },
        "test",
    )

    async def main() -> FetchResult:
        (fetcher,) = route_fetchers(settings, SystemClock()).values()
        try:
            return await fetcher.fetch(FetchRequest(PAGE))
        finally:
            await fetcher.close()

    result = asyncio.run(main())
    assert (len(result.body), result.truncated) == (1000, Truncated.LENGTH)


def test_the_guard_holds_for_what_a_service_is_asked_to_fetch(web: Doors) -> None:
    says(web, body="inside")
    for url in ("http://private.test/", "http://127.0.0.1/", "http://[::1]/", "http://169.254.169.254/latest"):
        result = ask(web, {}, FetchRequest(url))
        assert (result.status, result.error) == (0, FetchError.ADDRESS_REFUSED)
    assert not web.asked


def test_redirects_that_it_followed_are_edges_as_always(web: Doors) -> None:
    """What came is not taken as the page that was asked for: scope and robots have not seen its address yet."""
    says(web, url="https://user:secret@elsewhere.test/x", body="other")
    result = ask(web, {})
    assert (result.status, result.headers.get("location"), result.body) == (302, "https://elsewhere.test/x", b"")
    says(web, url="about:blank", body="same")
    assert ask(web, {}).body == b"same"


def test_only_pages_are_asked_for(web: Doors) -> None:
    says(web, body="x")
    result = ask(web, {}, FetchRequest(PAGE, "POST", b"a=1"))
    assert (result.error, result.detail) == (FetchError.LOCAL, "a service is not asked to POST")
    assert not web.asked


@pytest.mark.parametrize(
    ("route", "said"),
    [
        ({"url": "ftp://x.test/"}, "url: no http or https URL"),
        ({"url": "http://x.test/", "secrets": {"Authorization": "Bearer abc"}}, "never the secret itself"),
        ({"url": "http://x.test/", "timeout": 1000}, "timeout"),
        ({}, "missing required field `url`"),
    ],
)
def test_settings_that_cannot_be(route: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        convert({"routes": {"render": {"kind": "service", **route}}}, "test")


def test_a_secret_that_is_not_there_is_said_at_the_start(web: Doors) -> None:
    with pytest.raises(ConfigError, match="SOLVER_KEY is not set"):
        ask(web, {"secrets": {"Authorization": "SOLVER_KEY"}})


def test_a_crawl_by_a_service(web: Doors) -> None:
    """The page is blocked, comes by the service, and its links are followed by plain HTTP."""

    def serve(asked: Asked) -> Answer:
        url = json.loads(asked.body)["url"]
        return Answer(json.dumps({"url": url, "body": '<a href="/behind">x</a>'}), 200, JSON)

    web.open(HOME, "/page")
    web.block("http://a.test/page", agent())
    web.open("http://a.test/behind")
    web.doors[f"http://127.0.0.1:{web.port}/fetch"] = serve
    routes = {"render": {"kind": "service", "url": f"http://127.0.0.1:{web.port}/fetch"}}
    web.crawl(HOME, routes=routes, routing__order=["render"])
    story = web.story("http://a.test/page")
    assert (story.state, story.routes) == (UrlState.DONE, ("render",))
    assert web.story("http://a.test/behind").state is UrlState.DONE
