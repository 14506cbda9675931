"""Traps that make up hosts without end are bounded by caps, and caps that are raised are heard of."""

from __future__ import annotations

from typing import Any

import pytest

import crawlspace
from crawlspace import events
from crawlspace.cli.hosts import waits
from crawlspace.events import Ending
from crawlspace.states import UrlState
from crawlspace.types import HostFigures, Pace


class Endless(dict[str, Any]):
    """Each host of the trap links to three that nobody has seen."""

    def get(self, url: str, default: Any = None) -> Any:
        host = url.split("/")[2]
        if not host.endswith(".trap.test") or not url.endswith("/"):
            return super().get(url, default)
        number = int(host.split(".")[0].removeprefix("h"))
        links = "".join(f'<a href="http://h{3 * number + n}.trap.test/">x</a>' for n in (1, 2, 3))
        return 200, {"Content-Type": "text/html"}, f"<p>{host}</p>{links}".encode()


def crawl(web: Any, *seeds: str, told: list[events.Event] | None = None, **settings: Any) -> crawlspace.Result:
    values = {**web.quick(), "robots.obey": False, "discovery.sitemaps": False, "scope.strategy": "any"}
    values["network.resolve"] = {"*.test:80": f"127.0.0.1:{web.server.server_port}"}
    values |= {name.replace("__", "."): value for name, value in settings.items()}
    watch = None if told is None else told.append
    return crawlspace.Crawl(web.directory, list(seeds), settings=values, watch=watch).run()


def hosts_asked(web: Any) -> set[str]:
    return {url.split("/")[2] for url in web.asked}


def test_hosts_made_up_without_end_are_bounded_and_a_larger_bound_is_heard_of(web: Any) -> None:
    web.pages = Endless()
    web.page("http://a.test/", "http://h0.trap.test/")
    result = crawl(web, "http://a.test/", scope__hosts_per_domain=7, store__refusals_kept=10)
    assert result.ending is Ending.FINISHED
    assert len(hosts_asked(web)) == 1 + 7
    assert result.counts.states[UrlState.SKIPPED] == 10, "some of those refused are kept"
    assert result.counts.known == 1 + 7 + 10
    stories = [web.story(f"http://h{number}.trap.test/") for number in range(23)]
    assert {each.reason for each in stories if each and each.state is UrlState.SKIPPED} == {"domain_hosts"}
    again = crawl(web, scope__hosts_per_domain=11, store__refusals_kept=10)
    assert again.ending is Ending.FINISHED
    assert len(hosts_asked(web)) == 1 + 11, "those refused are judged again"


def test_hosts_beyond_what_an_address_may_have_rest_until_it_may_have_more(web: Any) -> None:
    for host in "abc":
        web.page(f"http://{host}.test/", "/one", "/two")
        for page in ("one", "two"):
            web.page(f"http://{host}.test/{page}")
    web.page("http://seed.test/", *(f"http://{host}.test/" for host in "abc"))
    told: list[events.Event] = []
    first = crawl(web, "http://seed.test/", told=told, scope__hosts_per_address=3)
    assert first.ending is Ending.BUDGET
    assert any("too many at their address" in str(event) for event in told)
    assert first.counts.states[UrlState.DONE] < 10
    assert crawl(web, scope__hosts_per_address=4).ending is Ending.FINISHED
    assert len(set(web.asked)) == 10


@pytest.mark.parametrize(
    ("parked", "told"),
    [
        ("group", "waits for its turn in a pace group: domain one.test, next 2023-11-14T22:30:00Z"),
        ("address_hosts", "parked: address_hosts, too many hosts are at 192.0.2.1"),
        ("paused", "parked: paused"),
    ],
)
def test_why_a_host_waits_is_told(parked: str, told: str) -> None:
    figures = HostFigures(
        "h.one.test",
        *(1, 0, 0, 0, 0),
        Pace(),
        parked,
        address="192.0.2.1",
        group="domain one.test",
        group_next_at=1_700_001_000_000,
    )
    assert waits(figures, 1_700_000_000_000) == told
