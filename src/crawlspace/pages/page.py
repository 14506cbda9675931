"""What is read of a page, and what it comes to: the values that reading one gives. Pure."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from crawlspace.pages.meta import NOTHING_SAID, Reservation
from crawlspace.types import Link


class PageSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is read of a page."""

    max_links: Annotated[
        int, Meta(description="Links taken from one page; those behind them are left out.", ge=1, le=1_000_000)
    ] = 10_000
    sitemaps: Annotated[
        bool, Meta(description="Read the sitemaps that robots.txt names, and those found on the way.")
    ] = True
    sitemap_paths: Annotated[
        tuple[Annotated[str, Meta(pattern="^/", max_length=500)], ...],
        Meta(description="Paths tried for a sitemap on every host, such as /sitemap.xml.", max_length=100),
    ] = ()
    requisites: Annotated[
        bool,
        Meta(
            description="Fetch images, style sheets, scripts and media of the crawl's pages too, from any host; "
            "they are not followed further."
        ),
    ] = False
    css: Annotated[
        bool, Meta(description="Look for requisites such as fonts in style sheets and style attributes too.")
    ] = False
    forms: Annotated[
        bool, Meta(description="Follow forms that are sent by GET, as they stand; passwords and files never.")
    ] = False
    data_attributes: Annotated[
        tuple[Annotated[str, Meta(pattern="^data-[a-z0-9_-]+$", max_length=100)], ...],
        Meta(description="Attributes such as data-href whose values are followed as links.", max_length=20),
    ] = ()
    pdf: Annotated[
        bool, Meta(description="Follow the links of PDF files too; read in a process of its own (extra `pdf`).")
    ] = False
    context: Annotated[
        bool, Meta(description="Note the text, the place and the kind of each link, for handlers.")
    ] = False
    product: Annotated[
        str, Meta(description="Name by which meta robots and X-Robots-Tag may address this crawler.", min_length=1)
    ] = "crawlspace"


class LinkContext(NamedTuple):
    """What surrounds a link in its page; of several to one address, the first."""

    position: int
    """How many links stand before it."""
    text: str = ""
    """What a reader clicks on: the text, or the description of a picture."""
    rel: str = ""
    """Its relation as it stands there, such as `alternate`, `next` or `prev`."""
    hreflang: str = ""
    """The language of what it leads to."""


class Version(NamedTuple):
    """Another version of a page, as its head names it: in another language, or in another form."""

    address: str
    hreflang: str
    type: str
    """Its media type."""


class Page(Struct, frozen=True):
    """What was read of an answer."""

    base_url: str
    """What links are relative to: the answer's URL, or what its base element says."""
    charset: str
    """Name of its encoding by the Encoding Standard, in lower case."""
    links: tuple[Link, ...] = ()
    """Not resolved; fragments and the blanks around an address dropped, each text once for each relation."""
    links_cut: bool = False
    """The page has more links than were taken."""
    title: str = ""
    canonical: str | None = None
    """The one address that it declares as its own, as text; None when declarations differ."""
    noindex: bool = False
    nofollow: bool = False
    """The page asks that none of its links be followed; a link's own wish is in the link."""
    language: str | None = None
    noai: bool = False
    """The page asks not to be used for training models."""
    noimageai: bool = False
    """It asks so for its pictures."""
    mining: Reservation = NOTHING_SAID
    """What it says of text and data mining."""
    contexts: tuple[LinkContext, ...] = ()
    """What surrounds each of the links, in the same order; empty unless the settings ask for it."""
    versions: tuple[Version, ...] = ()
    """What its head calls an alternate."""
    is_style: bool = False
    """The answer is a style sheet."""
