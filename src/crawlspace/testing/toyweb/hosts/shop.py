"""`shop.test`: products under many spellings, guides with print views, frames; and the hosts that repeat it.

With TLS the shop answers over https only, and http and `www.` send everybody there.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from crawlspace.testing.toyweb.answer import HTML, Answer, Reply, always, plain, redirect
from crawlspace.testing.toyweb.atlas import Atlas, Node
from crawlspace.testing.toyweb.prose import Href, Sheet, Tag, write_frameset
from crawlspace.testing.toyweb.recipe import Feature

PER_CATEGORY = 8
ROBOTS = "User-agent: *\nDisallow: /cart/\nDisallow: /*?sort=\n"
ALIASED = 4
"""Products that are also linked to by their http or www address."""


def draw(atlas: Atlas) -> None:
    origin = ("https" if atlas.recipe.tls else "http") + "://shop.test"
    atlas.host("shop.test", ROBOTS)
    atlas.special(f"{origin}/robots.txt", always(plain(200, ROBOTS)))
    products = [_product(origin, number) for number in range(1, atlas.recipe.extent.products + 1)]
    categories = _categories(atlas, origin, products)
    _products(atlas, origin, products)
    more = [f"{origin}/help", f"{origin}/about"]
    for page in more:
        atlas.page(page, Sheet(f"The shop: {urlsplit(page).path[1:]}", atlas.near([f"{origin}/"])))
    more += _guides(atlas, origin)
    if atlas.has(Feature.FRAMES):
        more += _frames(atlas, origin)
    aliases = _aliases(atlas, origin, products) if atlas.has(Feature.ALIASES) else []
    links = atlas.near([*categories, *more]) + atlas.plain([*aliases, *atlas.fronts])
    atlas.page(f"{origin}/", Sheet("The shop", links, paragraphs=4))
    atlas.seeds.insert(0, Href(f"{origin}/", f"{origin}/", f"{origin}/"))


def _product(origin: str, number: int) -> str:
    if number % 3 == 0:
        return f"{origin}/product/{number}?colour=red&size=m"
    if number % 5 == 0:
        return f"{origin}/~anna/product/{number}"
    return f"{origin}/product/{number}"


def _categories(atlas: Atlas, origin: str, products: list[str]) -> list[str]:
    links = atlas.spelled_in_turn(products, "categories")
    parts = [links[start : start + PER_CATEGORY] for start in range(0, len(links), PER_CATEGORY)]
    names = [f"{origin}/category/{number}" for number in range(1, len(parts) + 1)]
    for name, part in zip(names, parts, strict=True):
        atlas.page(name, Sheet("Category", part + atlas.near([f"{origin}/"])))
    return names


def _products(atlas: Atlas, origin: str, products: list[str]) -> None:
    for place, page in enumerate(products):
        others = [products[(place + step) % len(products)] for step in (1, 7, 13)]
        cart = f"{origin}/cart/add?item={place + 1}"
        links = atlas.spelled(others, page) + atlas.near([f"{origin}/", cart])
        atlas.page(page, Sheet(f"Product {place + 1}", links, canonical=page, lead=f"Article number {place + 1}."))
        atlas.page(cart, Sheet("Your cart", atlas.near([page])))
        atlas.fenced.add(cart)


def _guides(atlas: Atlas, origin: str) -> list[str]:
    """Guides link among themselves from the root of their host, so that a mirror has the same bytes."""
    count = atlas.recipe.extent.guides
    guides = [f"{origin}/guide/{number}" for number in range(1, count + 1)]
    for place, page in enumerate(guides):
        links = atlas.near([guides[(place + 1) % count], guides[place - 1]])
        sheet = Sheet(f"Guide {place + 1}", links, voice=page, lead=f"Part {place + 1} of {count}.")
        if atlas.has(Feature.MIRROR):
            print_view = f"{page}/print"
            atlas.page(print_view, Sheet(sheet.title, voice=page, lead=sheet.lead))
            atlas.print_views[print_view] = page
            sheet = Sheet(sheet.title, links + atlas.near([print_view]), voice=page, lead=sheet.lead)
        atlas.page(page, sheet)
    if atlas.has(Feature.MIRROR):
        _mirror(atlas, origin)
    return guides[:1]


def _mirror(atlas: Atlas, origin: str) -> None:
    mirror = atlas.host("mirror.shop.test")
    for node in [node for node in atlas.nodes.values() if node.id.startswith(f"{origin}/guide/")]:
        links = tuple(Href(link.text, mirror + link.text, mirror + link.text) for link in node.links)
        page = mirror + node.id.removeprefix(origin)
        atlas.add(Node(page, node.reply, links=links))
        atlas.mirrors[page] = node.id
    atlas.front(f"{mirror}/guide/1")


def _frames(atlas: Atlas, origin: str) -> list[str]:
    names = ("menu", "main", "inline", "inside", "soon", "arrived")
    menu, main, inline, inside, soon, arrived = (f"{origin}/frames/{name}" for name in names)
    front = f"{origin}/frames"
    frames = atlas.near([menu, main])
    body = write_frameset("Frames", frames)
    atlas.add(Node(front, always(Answer(200, HTML, body)), links=frames))
    atlas.page(menu, Sheet("Menu", atlas.near([inline, soon])))
    atlas.page(main, Sheet("Main frame", atlas.near([f"{origin}/"])))
    atlas.page(inline, Sheet("With an inline frame", _tagged(atlas, inside, Tag.FRAME)))
    atlas.page(inside, Sheet("Inside the inline frame"))
    atlas.page(soon, Sheet("Soon elsewhere", _tagged(atlas, arrived, Tag.REFRESH)))
    atlas.page(arrived, Sheet("Arrived"))
    return [front]


def _tagged(atlas: Atlas, page: str, tag: Tag) -> tuple[Href, ...]:
    return tuple(Href(link.text, link.url, link.page, tag) for link in atlas.near([page]))


def _aliases(atlas: Atlas, origin: str, products: list[str]) -> list[str]:
    """Addresses on other origins that redirect to the shop's, as links to be followed."""
    atlas.host("www.shop.test")
    origins = [f"{scheme}://www.shop.test" for scheme in (("https", "http") if atlas.recipe.tls else ("http",))]
    if atlas.recipe.tls:
        origins.append("http://shop.test")
    urls = []
    for alias in origins:
        atlas.wild(alias, _elsewhere(origin))
        for page in [f"{origin}/", *products[:ALIASED]]:
            url = alias + page.removeprefix(origin)
            atlas.moved(url, page)
            urls.append(url)
        atlas.special(f"{alias}/robots.txt", always(plain(200, ROBOTS)))
    return urls


def _elsewhere(origin: str) -> Reply:
    return lambda ask: redirect(301, origin + ask.target)
