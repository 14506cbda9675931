"""Which pages a site has, by its own links."""

from __future__ import annotations

from pathlib import Path

from bench.sites import REAL_SITES, Site, fingerprint, one_page_site, pages_of


def site_of(folder: Path, pages: dict[str, str]) -> Site:
    for name, text in pages.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return Site("made", folder)


def test_pages_are_those_that_links_lead_to(tmp_path: Path) -> None:
    """A page that nothing links to is none, nor is a file of another kind, nor another site's page."""
    links = [
        "a.html",
        "a.html#x",
        "sub/",
        "missing.html",
        "style.css",
        "http://elsewhere.example/",
        "//elsewhere.example/a.html",
    ]
    site = site_of(
        tmp_path,
        {
            "index.html": "".join(f"<a href='{link}'>" for link in links),
            "a.html": "<a href='../b%20c.html'><area href='a.html?q=1'><a href=''><a>",
            "b c.html": "",
            "sub/index.html": "<a href='inner.html'>",
            "sub/inner.html": "<a href='/index.html'>",
            "alone.html": "",
            "style.css": "",
        },
    )
    assert pages_of(site) == {
        "/", "/a.html", "/b%20c.html", "/a.html?q=1", "/sub/", "/sub/inner.html", "/index.html"
    }  # fmt: skip


def test_the_site_of_one_page_has_one(tmp_path: Path) -> None:
    site = one_page_site(tmp_path / "one")
    assert pages_of(site) == {"/"}
    assert site.missing() == ""


def test_a_site_that_is_not_there_names_the_package_to_install(tmp_path: Path) -> None:
    site = Site("pg", tmp_path / "nowhere", REAL_SITES["pg"].package)
    assert "apt-get install postgresql-doc-15" in site.missing()


def test_the_fingerprint_changes_with_a_byte_and_with_a_name(tmp_path: Path) -> None:
    names = ({"index.html": "a"}, {"index.html": "b"}, {"index.htm": "a"})
    sites = [site_of(tmp_path / str(number), pages) for number, pages in enumerate(names)]
    assert len({fingerprint(site) for site in sites}) == 3
    assert fingerprint(sites[0]) == fingerprint(site_of(tmp_path / "again", {"index.html": "a"}))
