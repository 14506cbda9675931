"""The site without end, and what the benchmark of growth says of a crawl of it."""

from __future__ import annotations

import re
import shutil
import urllib.error
import urllib.request

import pytest

from bench import growth
from bench import tree as site


def test_every_page_links_to_pages_of_its_own() -> None:
    seen: set[int] = {0}
    for number in range(4):
        targets = [target.decode() for target in re.findall(rb'href="([^"]+)"', site.page(number, 10))]
        assert {len("http://127.0.0.1:50000" + target) for target in targets} == {83}
        numbers = {site.number_of(target) for target in targets}
        assert len(numbers) == 10
        assert not numbers & seen
        seen |= {each for each in numbers if each is not None}
    assert seen == set(range(41))


@pytest.mark.parametrize(
    "target", ["/robots.txt", "/catalogue/", "/catalogue/section-0001/x.html", "/other/a-1.html"]
)
def test_what_is_no_page_has_no_number(target: str) -> None:
    assert site.number_of(target) is None


def test_it_is_served_by_a_process_of_its_own() -> None:
    with growth.tree() as url:
        with urllib.request.urlopen(url) as answer:
            assert answer.read() == site.page(0, growth.LINKS)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(url + "robots.txt")


def test_what_a_discovered_url_costs_is_the_difference_of_two_crawls() -> None:
    with growth.tree() as url:
        slope = growth.discovered("crawlspace", growth.crawlspace, url, (1, 5))
    assert 0 < slope.disk_bytes < 1000
    assert slope.cpu_ms < 5


@pytest.mark.realsite
def test_a_crawl_beside_many_known_urls() -> None:
    if shutil.which("nginx", path="/usr/bin:/usr/sbin:/usr/local/sbin") is None or growth.REAL_SITES["pg"].missing():
        pytest.skip("nginx or the documentation is not installed")
    found = growth.with_known(2000)
    assert (found.known, found.cpu_ms > 0, found.rss_mb > 0, 0 < found.first_request < 60) == (2000, True, True, True)
