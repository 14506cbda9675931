"""What re-keying must do to every store: inherit the suite, for a kind of store that it can make, read and alter."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.rekey import apply, outlook
from crawlspace.app.rekeyers import Crawl, look_at, open_rekeyer
from crawlspace.app.store import open_beside
from crawlspace.errors import CrawlDirError
from crawlspace.frontier.rekeying import BATCH, DONE, Named, Progress
from crawlspace.settings import Settings
from crawlspace.states import UrlState
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.rekey_stores import HASH_KEY, T0, settings_with
from crawlspace.types import Address, Joined, Pointer, RequestSpec, host_id
from crawlspace.urls import Identity, policy_from

Tables = dict[str, list[dict[str, Any]]]

ORDER = ["done", "stored", "redirected", "delayed", "queued", "dead", "skipped"]
RULES: list[dict[str, Any]] = [
    {"policy": "aggressive"},
    {"fold_www": True},
    {"strip": ["ref"]},
    {"sort": False},
    {"hosts": [{"suffix": "s2.test", "lower_path": True, "fold_scheme": True}]},
]


def state_of(table: str, row: dict[str, Any]) -> str:
    return {"queue": "queued", "delayed": "delayed"}.get(table) or UrlState(row["state"]).name.lower()


def urls_of(tables: Tables) -> dict[int, tuple[str, dict[str, Any]]]:
    """State and row of every URL that stands for itself."""
    return {
        row["id"]: (state_of(table, row), row) for table in ("outcome", "queue", "delayed") for row in tables[table]
    }


def key_under(settings: Settings, row: dict[str, Any]) -> bytes:
    request = None if row["request"] is None else msgspec.msgpack.decode(row["request"], type=RequestSpec)
    address = Identity(policy_from(settings.identity), bytes.fromhex(HASH_KEY)).identify(row["url"], request=request)
    assert isinstance(address, Address)
    return address.key


def leads_home(settings: Settings, row: dict[str, Any]) -> bool:
    target = row.get("target")
    return target is not None and key_under(settings, {"url": target, "request": None}) == key_under(settings, row)


class Stubborn:
    """Rules under which some stored texts are no URLs any more."""

    def __init__(self, unreadable: set[str]) -> None:
        self._identity = Identity(policy_from(settings_with(policy="aggressive").identity), bytes.fromhex(HASH_KEY))
        self._unreadable = unreadable

    def name(self, url: str, request: RequestSpec | None) -> Named | None:
        address = self._identity.identify(url, request=request)
        assert isinstance(address, Address)
        return None if url in self._unreadable else Named(address.key, address.host, False)

    def heir(self, host: str) -> Named:
        named = self.name(f"{'https' if host.endswith(':80') else 'http'}://{host}/", None)
        assert named is not None
        return named


class RekeyContract:
    """A store under other rules: who stays, what is kept of who goes, and that every number stays right."""

    def make(self, path: Path) -> CrawlDirectory:
        """A crawl of some 1,500 URLs as `rekey_stores.fill` makes it."""
        raise NotImplementedError

    def tables(self, crawl: CrawlDirectory) -> Tables:
        """All rows of all tables, keys as bytes; totals by their names."""
        raise NotImplementedError

    def alter(self, crawl: CrawlDirectory, table: str, where: dict[str, Any], **fields: Any) -> int:
        """Change rows, as if something else had happened to them; how many."""
        raise NotImplementedError

    def audit(self, crawl: CrawlDirectory) -> None:
        """Every number is what the rows say."""
        raise NotImplementedError

    def rekey(self, crawl: CrawlDirectory, **identity: Any) -> Progress | None:
        """Re-key, and check every number after."""
        done = asyncio.run(apply(crawl, settings_with(**identity), ManualClock(T0), lambda _: None, 300))
        self.audit(crawl)
        return done

    def stopped_after(self, crawl: CrawlDirectory, steps: int, **identity: Any) -> None:
        """Begin a re-keying and fall over after so many steps."""

        class Fell(Exception):
            """The program is gone."""

        left = steps

        def watch(_: Progress) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Fell

        with pytest.raises(Fell):
            asyncio.run(apply(crawl, settings_with(**identity), ManualClock(T0), watch, 300))

    @pytest.mark.parametrize("rules", RULES, ids=str)
    def test_of_each_group_the_best_state_stays_and_the_others_are_kept_as_they_were(
        self, tmp_path: Path, rules: dict[str, Any]
    ) -> None:
        crawl = self.make(tmp_path / "c")
        before, settings = urls_of(self.tables(crawl)), settings_with(**rules)
        groups: dict[bytes, list[int]] = defaultdict(list)
        for number, (_, row) in before.items():
            groups[key_under(settings, row)].append(number)
        done = self.rekey(crawl, **rules)
        after = self.tables(crawl)
        assert done is not None
        assert done.merged == len(before) - len(groups) == len(after["merged"])
        assert done.merged > 0 or rules == {"sort": False}
        assert {row["fp"] for row in after["seen"]} >= set(groups)
        winners = {row["fp"]: row["id"] for row in after["seen"]}
        merged = {row["id"]: row for row in after["merged"]}
        for key, numbers in groups.items():
            best = min(
                numbers,
                key=lambda n: (leads_home(settings, before[n][1]), ORDER.index(before[n][0]), n),
            )
            assert winners[key] == best
            for loser in set(numbers) - {best}:
                state, row = before[loser]
                kept = merged[loser]
                assert (kept["winner"], kept["rules"]) == (best, done.rules)
                assert UrlState(kept["state"]).name.lower() == ("queued" if state == "delayed" else state)
                same = (
                    "url",
                    "history",
                    "status",
                    "offset",
                    "requested_at",
                    "attempts",
                    "found_at",
                    "due_at",
                    "digest",
                )
                assert {name: kept[name] for name in same if name in row} == {n: row[n] for n in same if n in row}

    def test_a_dry_run_changes_nothing_and_says_what_the_real_one_then_does(self, tmp_path: Path) -> None:
        crawl = self.make(tmp_path / "c")
        before = self.tables(crawl)
        said = asyncio.run(outlook(crawl, settings_with(policy="aggressive"), ManualClock(T0)))
        assert self.tables(crawl) == before
        assert said is not None
        assert "fold_www: no -> yes" in said.difference
        assert said.parting is None
        done = self.rekey(crawl, policy="aggressive")
        assert done is not None
        told = said.forecast
        assert (told.urls, told.changed, told.merged, told.restored) == (done.urls, done.changed, done.merged, 0)
        assert told.merges
        assert told.changes

    def test_rules_set_back_part_what_they_had_merged_and_every_row_is_as_before(self, tmp_path: Path) -> None:
        """Only ways and pace may have got better or slower, and redirects become known that were only counted."""
        crawl = self.make(tmp_path / "c")
        there = self.rekey(crawl)
        assert there is None
        self.schedule(crawl)
        before = self.tables(crawl)
        went = self.rekey(crawl, policy="aggressive")
        middle = self.tables(crawl)
        back = self.rekey(crawl)
        after = self.tables(crawl)
        assert went is not None
        assert back is not None
        assert back.restored == went.merged > 100
        assert after["merged"] == []
        changing = ("parent", "copy_of", "class", "depth", "hops", "relation", "suspect", "settled")
        old, new = urls_of(before), urls_of(after)
        assert set(old) <= set(new)
        for number, (state, row) in old.items():
            now_state, now = new[number]
            assert now_state == state
            assert {k: v for k, v in now.items() if k not in changing} == {
                k: v for k, v in row.items() if k not in changing
            }
        requests = [sum(host["fetched"] for host in tables["host"]) for tables in (before, middle, after)]
        assert len(set(requests)) == 1
        names = {host["name"] for host in after["host"]}
        assert names >= {host["name"] for host in before["host"] if host["met"]}

    def schedule(self, crawl: CrawlDirectory) -> None:
        """URLs have routes, and pages that are done another visit."""
        when = {"next_visit": T0 + 86_400_000, "interval_ms": 86_400_000, "content": b"c" * 8}
        assert self.alter(crawl, "outcome", {"state": int(UrlState.DONE)}, **when, route="browser") > 100
        assert self.alter(crawl, "queue", {"depth": 1}, route="browser") > 10
        assert self.alter(crawl, "delayed", {"depth": 2}, route="browser service") > 5

    def test_a_host_that_merges_is_asked_no_faster_and_keeps_every_count(self, tmp_path: Path) -> None:
        crawl = self.make(tmp_path / "c")
        before = {host["name"]: host for host in self.tables(crawl)["host"]}
        self.rekey(crawl, fold_www=True)
        after = {host["name"]: host for host in self.tables(crawl)["host"]}
        assert not [name for name in after if name.startswith("www.")]
        folded = [name for name in after if f"www.{name}" in before and name in before]
        assert folded
        for name in folded:
            both = before[name], before[f"www.{name}"]
            assert after[name]["fetched"] == sum(host["fetched"] for host in both)
            assert after[name]["delay_ms"] == max(host["delay_ms"] or 0 for host in both) or None
            assert after[name]["next_at"] >= max(host["next_at"] for host in both)
            assert after[name]["seed"] == max(host["seed"] for host in both)

    def test_nothing_names_a_merged_url_any_more(self, tmp_path: Path) -> None:
        crawl = self.make(tmp_path / "c")
        self.rekey(crawl, policy="aggressive")
        tables = self.tables(crawl)
        gone = {row["id"] for row in tables["merged"]}
        for table in ("outcome", "queue", "delayed"):
            assert not gone & {row["parent"] for row in tables[table]}
            assert not [row for row in tables[table] if row["parent"] == row["id"]]
        assert not gone & {row["copy_of"] for row in tables["outcome"]}
        assert not gone & {row["id"] for row in tables["content"]}
        assert not [row for row in tables["outcome"] if row["copy_of"] == row["id"]]
        assert sum(row["copy_of"] is not None for row in tables["outcome"]) > 0
        for name in ("id", "copy_of", "grp", "stopped_by"):
            assert not gone & {row[name] for row in tables["page"]}, name
        assert not gone & {row["id"] for row in tables["said"]}
        assert not [row for row in tables["page"] if row["copy_of"] == row["id"]]
        assert sum(row["copy_of"] is not None for row in tables["page"]) > 0
        exact = sum(row["verdict"] == 1 for row in tables["page"])
        assert {row["n"] for row in tables["content_total"] if row["name"] == "exact"} == {exact}
        assert sum(row["exact"] for row in tables["host_content"]) == exact

    def test_waiting_urls_that_merge_take_the_better_class_and_way(self, tmp_path: Path) -> None:
        crawl = self.make(tmp_path / "c")
        before, settings = urls_of(self.tables(crawl)), settings_with(policy="aggressive")
        waiting: dict[bytes, list[dict[str, Any]]] = defaultdict(list)
        others: set[bytes] = set()
        for state, row in before.values():
            key = key_under(settings, row)
            if state in ("queued", "delayed"):
                waiting[key].append(row)
            elif state not in ("dead", "skipped") and not leads_home(settings, row):
                others.add(key)
        self.rekey(crawl, policy="aggressive")
        after = self.tables(crawl)
        numbers = {row["fp"]: row["id"] for row in after["seen"]}
        now = {row["id"]: row for table in ("queue", "delayed") for row in after[table]}
        several = [key for key, rows in waiting.items() if len(rows) > 1 and key not in others]
        assert several
        for key in several:
            row = now[numbers[key]]
            assert row["class"] == min(each["class"] for each in waiting[key])
            assert row["depth"] == min(each["depth"] for each in waiting[key])

    def test_what_was_merged_into_a_url_can_be_asked(self, tmp_path: Path) -> None:
        crawl = self.make(tmp_path / "c")
        asked = Crawl(crawl, settings_with().frontier(), ManualClock(T0))
        with look_at(asked) as look:
            assert look.merged_into(1) == []
        self.rekey(crawl, policy="aggressive")
        rows = self.tables(crawl)["merged"]
        winner = rows[0]["winner"]
        with look_at(asked) as look:
            told = look.merged_into(winner)
        expected = [row for row in rows if row["winner"] == winner]
        assert [(each.id, each.url, each.state) for each in told] == [
            (r["id"], r["url"], r["state"]) for r in expected
        ]
        assert all(
            (each.pointer is None) == (row["segment"] is None) for each, row in zip(told, expected, strict=True)
        )

    def test_captures_of_merged_urls_are_found_in_files_that_were_joined_later(self, tmp_path: Path) -> None:
        crawl = self.make(tmp_path / "c")
        self.rekey(crawl, policy="aggressive")
        settings = settings_with().frontier()
        row = next(row for row in self.tables(crawl)["merged"] if row["segment"] is not None)

        async def join() -> None:
            store = await open_beside(crawl, settings, ManualClock(T0))
            try:
                await store.relocate([Joined("whole.warc.gz", 10**7, (("a.warc.gz", 77),))])
            finally:
                await store.close()

        asyncio.run(join())
        with look_at(Crawl(crawl, settings, ManualClock(T0))) as look:
            told = {each.id: each.pointer for each in look.merged_into(row["winner"])}
        assert told[row["id"]] == Pointer("whole.warc.gz", row["offset"] + 77, row["length"])

    def test_a_redirect_to_another_spelling_of_itself_gives_way_to_the_page(self, tmp_path: Path) -> None:
        """Else http that redirects to https would end the page that was still to be fetched."""
        crawl = self.make(tmp_path / "c")
        before = self.tables(crawl)
        number, url = next(
            (row["id"], row["url"])
            for row in before["queue"]
            if re.match(r"https://s.\.test/p", row["url"]) and row["request"] is None
        )
        other = next(row["id"] for row in before["outcome"] if row["state"] == UrlState.REDIRECTED)
        assert self.alter(crawl, "outcome", {"id": other}, url=url.replace("https:", "http:"), target=url) == 1
        self.rekey(crawl, fold_scheme=True)
        tables = self.tables(crawl)
        (winner,) = [row["winner"] for row in tables["merged"] if row["id"] == other]
        state, row = urls_of(tables)[winner]
        assert row["url"].partition("//")[2] == url.partition("//")[2]
        assert state != "redirected"
        assert winner == number or state != "queued"

    def test_a_host_that_was_given_up_is_buried_first(self, tmp_path: Path) -> None:
        crawl = self.make(tmp_path / "c")
        hosts = self.tables(crawl)["host"]
        hid = next(host["hid"] for host in hosts if host["n_queued"] > 3 and host["token"] is None)
        assert self.alter(crawl, "host", {"hid": hid}, parked="condemned", condemned="dns") == 1
        self.rekey(crawl, strip=["ref"])
        assert not [row for row in self.tables(crawl)["queue"] if row["hid"] == hid]
        assert not [host for host in self.tables(crawl)["host"] if host["condemned"]]

    @pytest.mark.parametrize(
        ("holds", "after"),
        [
            (("paused", None), "paused"),
            ((None, "paused"), "paused"),
            (("paused", "blocked"), "blocked"),
            (("blocked", "paused"), "blocked"),
        ],
    )
    def test_what_a_person_holds_stays_held_when_hosts_merge(
        self, tmp_path: Path, holds: tuple[str | None, str | None], after: str
    ) -> None:
        crawl = self.make(tmp_path / "c")
        names = ("s2.test", "www.s2.test")
        for name, held in zip(names, holds, strict=True):
            assert self.alter(crawl, "host", {"name": name}, held=held, parked=held) == 1
        self.rekey(crawl, fold_www=True)
        (host,) = [host for host in self.tables(crawl)["host"] if host["name"] == names[0]]
        assert host["held"] == after
        assert host["parked"] in (after, "host_budget")
        assert host["ready"] == 0

    def test_the_scope_goes_by_the_new_names_of_its_seeds(self, tmp_path: Path) -> None:
        crawl = self.make(tmp_path / "c")
        self.rekey(crawl, fold_www=True)
        (roots,) = [fact["value"] for fact in self.tables(crawl)["meta"] if fact["key"] == "scope"]
        assert {host for host, _ in msgspec.json.decode(roots)["seeds"]} == {"s1.test"}

    def test_rules_that_the_crawl_has_already_change_nothing(self, tmp_path: Path) -> None:
        crawl = self.make(tmp_path / "c")
        assert self.rekey(crawl) is None
        assert asyncio.run(outlook(crawl, settings_with(), ManualClock(T0))) is None
        assert not self.tables(crawl).get("merged")

    def test_after_every_step_every_number_is_right(self, tmp_path: Path) -> None:
        crawl = self.make(tmp_path / "c")
        settings = settings_with(policy="aggressive")
        steps = 0

        def watch(_: Progress) -> None:
            nonlocal steps
            steps += 1
            self.audit(crawl)

        done = asyncio.run(apply(crawl, settings, ManualClock(T0), watch, 400))
        assert done is not None
        assert done.stage == DONE
        assert steps > 10

    def test_another_goal_is_refused_while_one_is_under_way(self, tmp_path: Path) -> None:
        crawl = self.make(tmp_path / "c")
        self.stopped_after(crawl, 4, policy="aggressive")
        with pytest.raises(CrawlDirError, match="fold_scheme: yes -> no"):
            self.rekey(crawl, fold_www=True)
        with pytest.raises(CrawlDirError, match="under way"):
            asyncio.run(outlook(crawl, settings_with(policy="aggressive"), ManualClock(T0)))
        assert self.rekey(crawl, policy="aggressive") is not None

    def test_what_is_no_url_any_more_keeps_its_key_and_its_host(self, tmp_path: Path) -> None:
        crawl = self.make(tmp_path / "c")
        self.rekey(crawl)
        before = self.tables(crawl)
        number, fp = next((row["id"], row["fp"]) for row in before["seen"] if row["id"] == 7)
        url = urls_of(before)[number][1]["url"]

        async def run() -> None:
            asked = Crawl(crawl, settings_with().frontier(), ManualClock(T0))
            async with open_rekeyer(asked, Stubborn({url}), BATCH) as rekeyer:
                progress = await rekeyer.begin("x", {}, parts=False)
                async for reached in rekeyer.run(progress):
                    progress = reached
                await rekeyer.finish(progress, {})

        asyncio.run(run())
        self.audit(crawl)
        assert not [host for host in before["host"] if host["token"] is not None]
        after = self.tables(crawl)
        assert {row["id"]: row["fp"] for row in after["seen"]}[number] == fp
        assert host_id(fp) in {host["hid"] for host in after["host"]}
