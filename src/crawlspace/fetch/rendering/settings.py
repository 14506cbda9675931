"""What a browser may do, and for how long."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

from crawlspace.fetch.proxy import check_proxies
from crawlspace.fetch.secrets import check_variables
from crawlspace.policy.routes import RouteBase

MIB: Final = 1 << 20

Kind = Literal[
    "document",
    "stylesheet",
    "image",
    "media",
    "font",
    "script",
    "texttrack",
    "xhr",
    "fetch",
    "eventsource",
    "manifest",
    "other",
]
"""Kinds of requests as browsers tell them apart; `document` is a frame within the page."""


class BrowserSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A browser and the limits of one page in it. It is used where `rendering` or a route asks for one."""

    executable: Annotated[
        str,
        Meta(description="The browser's program, a Chromium; empty: the first of chromium, google-chrome and kin."),
    ] = ""
    sandbox: Annotated[
        bool,
        Meta(description="Run the browser in its own sandbox. As root it has none, whatever stands here."),
    ] = True
    user_agent: Annotated[
        str,
        Meta(description="What sites see of the browser, {version} and {contact} filled in; empty: the crawl's own."),
    ] = ""
    pages: Annotated[int, Meta(ge=1, le=100, description="Pages open at once in each process.")] = 2
    timeout: Annotated[
        float, Meta(gt=0, le=100, description="Seconds for a page from its opening to its document being taken.")
    ] = 30.0
    wait: Annotated[
        float,
        Meta(ge=0, le=600, description="Seconds, once a page is read, to wait for half a second without requests."),
    ] = 5.0
    block: Annotated[
        tuple[Kind, ...],
        Meta(description="Kinds of requests of a page that are not let through.", max_length=20),
    ] = ("image", "media", "font", "texttrack", "manifest")
    max_requests: Annotated[
        int, Meta(ge=0, le=100_000, description="Requests that a page may make besides its own.")
    ] = 200
    max_bytes: Annotated[
        int, Meta(ge=64 << 10, description="Bytes over all connections of a page, both ways; then they are cut.")
    ] = 20 * MIB
    max_document: Annotated[
        int, Meta(ge=1, le=1 << 30, description="Bytes of a document that are taken; the rest is cut.")
    ] = 10 * MIB
    navigations: Annotated[
        int,
        Meta(ge=1, le=100, description="Times that a page may load itself again, as pages that check browsers do."),
    ] = 4
    memory: Annotated[
        int,
        Meta(
            ge=256, le=1 << 20, description="MiB that the browser's processes may take together before it is ended."
        ),
    ] = 2048
    renew_after: Annotated[
        int, Meta(ge=1, description="Pages after which a fresh browser takes the place of the old one.")
    ] = 200


class BrowserRoute(RouteBase, frozen=True, kw_only=True, tag="browser"):
    """The crawl's browser (`browser.*`, extra `browser`), which asks for pages itself."""

    user_agent: Annotated[str, Meta(pattern=r"^[\t -~]*$", max_length=4000)] = ""
    """Another user agent; empty: `browser.user_agent`, or the crawl's own. Robots rules go by the crawl's own."""
    proxies: Annotated[tuple[str, ...], Meta(max_length=100)] = ()
    """Proxies, or `direct`: a host stays with one until that fails or is refused. None: as `network.proxy` says."""
    proxy_auth: dict[str, str] = field(default_factory=dict)
    """From a proxy to the environment variable that holds its user:password."""

    def __post_init__(self) -> None:
        for proxy in self.proxies:
            check_proxies(proxy, {})
        check_proxies("", self.proxy_auth)
        check_variables(self.proxy_auth, "proxy_auth")
