"""Rows 5 and 22: a secret goes to its own origin, and into nothing that we write."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crawlspace.clock import SystemClock
from crawlspace.exchange import FetchRequest, Headers
from crawlspace.fetch import FetchSettings, NetworkSettings
from crawlspace.fetch.credentials import Credentials
from crawlspace.fetch.proxy import Proxies
from crawlspace.fetch.request import Composer, destination_of
from crawlspace.fetch.tunnel import hands_over

CANARY = "c4n4ry"
HOME = "https://www.a.test/"
RELATIONS = {
    "same": HOME,
    "port": "https://www.a.test:8443/",
    "scheme": "http://www.a.test/",
    "sub": "https://x.www.a.test/",
    "sibling": "https://other.a.test/",
    "suffix": "https://b.test/",
}


@pytest.mark.parametrize("relation", RELATIONS)
def test_row_5_logins_and_cookies_stay_with_their_origin(relation: str) -> None:
    settings = FetchSettings(auth={HOME: "LOGIN"}, cookies=True)
    credentials = Credentials(settings, {"LOGIN": f"robot:{CANARY}"}, SystemClock())
    credentials.learn(destination_of(HOME), Headers(((b"Set-Cookie", b"alone=1"),)))
    to = destination_of(RELATIONS[relation])
    fields = credentials.fields(FetchRequest(RELATIONS[relation]), to)
    assert set(fields) == ({"Authorization", "Cookie"} if relation == "same" else set())


@pytest.mark.parametrize("relation", RELATIONS)
def test_row_5_a_cookie_for_a_whole_domain_leaves_neither_it_nor_its_scheme(relation: str) -> None:
    credentials = Credentials(FetchSettings(cookies=True), {}, SystemClock())
    source = destination_of(HOME)
    credentials.learn(source, Headers(((b"Set-Cookie", b"a=1; Domain=a.test"), (b"Set-Cookie", b"b=1; Domain=test"))))
    fields = credentials.fields(FetchRequest(RELATIONS[relation]), destination_of(RELATIONS[relation]))
    assert fields.get("Cookie") == (None if relation in ("scheme", "suffix") else "a=1")


@pytest.mark.parametrize("relation", RELATIONS)
def test_row_5_a_proxys_login_goes_to_the_proxy_alone(relation: str) -> None:
    """Within a tunnel no request carries it; a request that is handed over goes to the proxy itself."""
    network = NetworkSettings(
        proxy={"www.a.test": "http://proxy.test:3128"}, proxy_auth={"http://proxy.test:3128": "LOGIN"}
    )
    proxies = Proxies(network.proxy, network.proxy_auth, {"LOGIN": f"robot:{CANARY}"})
    origin = destination_of(RELATIONS[relation]).origin
    proxy = proxies.of(origin)
    handed_over = proxy is not None and hands_over(proxy, origin)
    assert (proxy is not None, handed_over) == (relation in ("same", "port", "scheme"), relation == "scheme")
    other = Proxies({"*": "http://other.test:3128"}, network.proxy_auth, {"LOGIN": f"robot:{CANARY}"})
    through = other.of(origin)
    assert through is not None
    assert other.login(through) is None


@pytest.mark.parametrize("relation", RELATIONS)
def test_row_5_no_page_is_told_which_page_led_to_it(relation: str) -> None:
    head = Composer("crawlspace-test/1").compose(FetchRequest(HOME), destination_of(RELATIONS[relation]))
    assert b"referer" not in head.lower()
    assert b"\r\nOrigin:" not in head


def test_row_5_a_chain_of_redirects_takes_nothing_along(web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGIN", f"robot:{CANARY}")
    hops = ["http://www.a.test/", "http://www.a.test/in", "http://www.a.test:81/", "http://x.www.a.test/"]
    hops += ["http://other.a.test/", "http://b.test/"]
    for here, there in zip(hops, [*hops[1:], "http://www.a.test/end"], strict=True):
        web.put(here, b"", b"Set-Cookie: id=1; Path=/", b"Location: " + there.encode(), status=b"302 Found")
    web.page("http://www.a.test/end")
    web.crawl(
        "http://www.a.test/", fetch__auth={"http://www.a.test": "LOGIN"}, fetch__cookies=True, scope__strategy="any"
    )
    heads = [head for head, url in zip(web.asked, web.urls, strict=True) if not url.endswith("robots.txt")]
    with_login = [b"\r\nAuthorization: Basic " in head for head in heads]
    with_cookie = [b"\r\nCookie: id=1\r\n" in head for head in heads]
    assert len(heads) == len(hops) + 1
    assert with_login == [True, True, False, False, False, False, True]
    assert with_cookie == [False, True, False, False, False, False, True]


def test_item_2_a_page_that_redirects_to_itself_with_a_cookie_is_read_although_cookies_are_off(web: Any) -> None:
    def gate(head: bytes) -> bytes:
        if b"\r\nCookie: seen=1\r\n" in head:
            return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nok"
        return b"HTTP/1.1 302 Found\r\nSet-Cookie: seen=1\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"

    web.pages["http://a.test/"] = gate
    web.page("http://a.test/other")
    bodies: list[bytes] = []
    web.crawl("http://a.test/", "http://a.test/other", handler=lambda page: bodies.append(page.body))
    assert b"ok" in bodies
    later = next(head for head, url in zip(web.asked, web.urls, strict=True) if url.endswith("other"))
    assert b"Cookie" not in later


def everything_under(directory: Path) -> bytes:
    """All that a crawl wrote, with what is compressed opened."""
    parts: list[bytes] = []
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            raw = path.read_bytes()
            parts += [str(path).encode(), raw, gzip.decompress(raw) if path.suffix == ".gz" else b""]
    return b"\n".join(parts)


SPELLINGS = [CANARY.encode(), base64.b64encode(f"robot:{CANARY}".encode()).rstrip(b"=")[:-1]]


def assert_silent(written: bytes) -> None:
    for spelling in SPELLINGS:
        at = written.find(spelling)
        assert at < 0, written[max(0, at - 200) : at + 100]


def secretive(port: int, proxy: str) -> list[str]:
    """Options with a login for a site and one for a proxy."""
    settings = {
        "fetch.auth": '{"http://a.test" = "SITE"}',
        "fetch.cookies": "true",
        "archive.redact_set_cookie": "true",
        "network.proxy": f'{{"b.test" = "{proxy}"}}',
        "network.proxy_auth": f'{{"{proxy}" = "SITE"}}',
        "network.resolve": f'{{"*.test" = "127.0.0.99:{port}"}}',
        "network.allow": '["127.0.0.99"]',
        "scope.strategy": "any",
        "host.delay": "0",
        "contact": "tests@crawlspace.test",
    }
    return [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]


def test_row_22_a_secret_in_any_input_comes_out_nowhere(
    web: Any, command: Callable[..., tuple[int, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE", f"robot:{CANARY}")
    proxy = f"http://127.0.0.99:{web.port}"
    options = secretive(web.port, proxy)
    web.put(
        "http://a.test/",
        f'<a href="http://u:{CANARY}@b.test/x">x</a><a href="/gone">x</a>'.replace(CANARY, "other").encode(),
        f"Set-Cookie: session={CANARY}".encode(),
    )
    web.redirect("http://a.test/moved", f"http://u:{CANARY}@b.test/y".replace(CANARY, "other").encode())
    for path in "xy":
        web.page(f"http://b.test/{path}")
    seed = f"http://robot:{CANARY}@a.test/"
    code, told = command("crawl", seed, "http://a.test/moved", "--dir", web.directory, *options)
    assert code == 0, told
    sent = b"".join(web.asked)
    assert b"\r\nAuthorization: Basic " in sent
    assert b"\r\nCookie: session=" + CANARY.encode() in sent
    assert b"\r\nProxy-Authorization: Basic " in sent
    assert_silent(told)
    verbs = [
        ("config", "show", web.directory),
        ("config", "show", web.directory, "--json"),
        ("stats", web.directory),
        ("hosts", web.directory, "--json"),
        ("explain", web.directory, "http://a.test/"),
        ("explain", web.directory, "http://b.test/x", "--json"),
        ("parse", web.directory, "http://a.test/"),
        ("dlq", "list", web.directory),
        ("normalize", seed),
        ("fetch", "http://a.test/", "--head", *options, "-s", "fetch.cookies=false"),
    ]
    for words in verbs:
        code, told = command(*words)
        assert b"Traceback" not in told
        if words[0] != "fetch":  # it shows what the server said, which is the one thing it is for
            assert_silent(told)
    assert_silent(everything_under(web.directory))
    assert b"[redacted]" in everything_under(web.directory)


@pytest.mark.parametrize(
    "setting",
    [
        'fetch.auth={"https://a.test" = "robot:CANARY"}',
        'fetch.auth={"https://robot:CANARY@a.test" = "SITE"}',
        'fetch.client_certificates={"https://robot:CANARY@a.test" = "x.pem"}',
        'fetch.tls_unverified=["https://robot:CANARY@a.test"]',
        "network.proxy=http://robot:CANARY@proxy.test:3128",
        'network.proxy={"*" = "socks5://robot:CANARY@proxy.test"}',
        'network.proxy_auth={"http://proxy.test" = "robot:CANARY"}',
    ],
)
def test_row_22_a_secret_in_a_setting_is_refused_before_it_is_written(
    setting: str, web: Any, command: Callable[..., tuple[int, bytes]]
) -> None:
    code, told = command("crawl", "http://a.test/", "--dir", web.directory, "-s", setting.replace("CANARY", CANARY))
    assert code == 2
    assert_silent(told)
    assert_silent(everything_under(web.directory))


def test_the_search_for_the_canary_opens_what_is_compressed(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"x" + CANARY.encode()))
    with pytest.raises(AssertionError):
        assert_silent(everything_under(tmp_path))
