"""`crawlspace rules learned` and `crawlspace duplicates`, on one crawl of a small site."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.duplicates import open_duplicates
from crawlspace.cli.options import settings_used
from crawlspace.errors import CrawlDirInUse
from crawlspace.policy.evidence import RuleState

from .conftest import HOST, Answer, Ran, Web, crawl, page, serving

Verb = Callable[..., Ran]

SITE = f"http://{HOST}"
USAGE = 2
LONG = " ".join(f"part{n}" for n in range(300))


def site(target: str) -> Answer:
    """Pages under `?v=`, two that differ in a word, three with one text, and what they declare."""
    seen = re.fullmatch(r"/(\d)(\?v=\d)?", target)
    if target == "/":
        return page(
            "first", *(f"/{n}{view}" for n in range(7) for view in ("", "?v=1")), "/moved", "/one", "/two", "/same"
        )
    if seen is not None:
        return page(
            f"page {seen[1]}", "/", head=f'<link rel="canonical" href="/{seen[1]}">' if seen[1] == "3" else ""
        )
    if target == "/moved":
        return 301, "/alike"
    if target in ("/one", "/two"):
        return 200, f"<title>Long</title><p>{LONG} {target[1:]}</p><a href='/'></a>"
    return page("alike", "/third") if target in ("/same", "/alike", "/third") else (404, "none")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verbs") / "c"
    with serving(site) as web:
        crawl(web, folder, mode="suggest")
    return folder


@pytest.fixture
def directory(made: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(made, tmp_path / "c"))


def rule_of(verb: Verb, directory: Path) -> str:
    (rule,) = (line["rule"] for line in verb("rules", "learned", directory, "--json").lines if line["detail"] == "v")
    return str(rule)


# -- learned rules ------------------------------------------------------------------------------------------


def test_rules_are_shown_with_what_speaks_for_them(verb: Verb, made: Path) -> None:
    ran = verb("rules", "learned", made)
    assert ran.code == 0
    assert "proposed   site.test: the parameter v changes nothing" in ran.out
    assert re.search(
        r"\d+ pairs speak for it \(0 redirects, 1 canonical links, 7 equal texts\), 0 against it", ran.out
    )
    (facts,) = verb("rules", "learned", made, "--json").lines
    assert (facts["kind"], facts["state"], facts["in_effect"], facts["against"]) == ("param", "proposed", False, 0)
    assert facts["confidence"] == round(9 / 10, 4)
    assert len(facts["examples"]) == 3


def test_an_accepted_rule_is_applied_at_the_next_start_and_a_rejected_one_undone(verb: Verb, directory: Path) -> None:
    rule = rule_of(verb, directory)
    told = verb("rules", "learned", directory, "--accept", rule)
    assert "accepted   site.test" in told.out
    assert "applied when the crawl is started the next time" in told.out
    with serving(site) as web:
        crawled = crawl(web, directory, mode="off")
        assert crawled.told == ["learned rules: applying site.test param v"]
        assert crawled.rules()["site.test param v"].state is RuleState.APPLIED
        explained = verb("explain", directory, f"{SITE}/4?v=9", "--json").lines[0]
        assert explained["canonical"] == f"{SITE}/4"
        assert [each["state"] for each in explained["merged"]] == ["done"]
        assert "one with it by the URL rules; before: done HTTP 200" in verb("explain", directory, f"{SITE}/4").out
        verb("rules", "learned", directory, "--reject", rule)
        assert crawl(web, directory).told == ["learned rules: undoing site.test param v"]
        assert crawled.identity().explain(f"{SITE}/4?v=9").canonical == f"{SITE}/4?v=9"
        assert crawl(web, directory).told == []
        assert [target for target in web.asked if "v=" in target] == []


def test_rules_are_exported_behind_what_a_file_holds(verb: Verb, directory: Path) -> None:
    printed = tomllib.loads(verb("rules", "learned", directory, "--export", "-").out)
    assert printed["identity"]["hosts"] == [{"host": HOST, "strip": ["v"]}]
    file = directory / "other.toml"
    file.write_text('[host]\ndelay = 2.0\n[[identity.hosts]]\nhost = "b.test"\nlower_path = true')
    assert "1 rules are in" in verb("rules", "learned", directory, "--export", file).out
    read = tomllib.loads(file.read_text())
    assert read["host"] == {"delay": 2.0}
    assert [entry["host"] for entry in read["identity"]["hosts"]] == ["b.test", HOST]
    new = directory / "new.toml"
    assert verb("rules", "learned", directory, "--export", new, "--rule", rule_of(verb, directory)).code == 0
    assert tomllib.loads(new.read_text()) == printed


def test_a_file_that_the_rules_do_not_fit_into_is_left_as_it_was(verb: Verb, directory: Path) -> None:
    file = directory / "fixed.toml"
    file.write_text("identity = { hosts = [] }\n")
    ran = verb("rules", "learned", directory, "--export", file)
    assert (ran.code, file.read_text()) == (USAGE, "identity = { hosts = [] }\n")
    assert "print them with --export -" in ran.err
    assert list(directory.glob("*.new")) == []
    assert verb("rules", "learned", directory, "--export", directory / "none" / "x.toml").code == USAGE


@pytest.mark.parametrize("options", [("--accept", "nothing"), ("--reject", "x"), ("--rule", "x")])
def test_a_rule_that_is_not_known_is_said_to_be_so(verb: Verb, made: Path, options: tuple[str, str]) -> None:
    ran = verb("rules", "learned", made, *options)
    assert ran.code == USAGE
    assert "no learned rule is called" in ran.err


def test_a_rule_is_not_accepted_and_rejected_at_once(verb: Verb, made: Path) -> None:
    assert verb("rules", "learned", made, "--accept", "a", "--reject", "a").code == USAGE


def test_a_crawl_that_learned_nothing_says_so(verb: Verb, tmp_path: Path) -> None:
    with serving(lambda _: page("alone")) as web:
        crawl(web, tmp_path / "c")
    assert "nothing was learned yet" in verb("rules", "learned", tmp_path / "c").out
    assert verb("rules", "learned", tmp_path / "none").code == USAGE


# -- duplicates ---------------------------------------------------------------------------------------------


def test_groups_are_listed_with_who_stands_for_them_and_why(verb: Verb, made: Path) -> None:
    groups = {
        tuple(sorted(member["url"] for member in group["members"])): group
        for group in verb("duplicates", made, "--json").lines
    }
    third = groups[f"{SITE}/3", f"{SITE}/3?v=1"]
    assert (third["likeness"], third["representative"], third["why"]) == ("exact", f"{SITE}/3", "canonical")
    claims = {member["url"]: member["claim"] for member in third["members"]}
    assert claims == {f"{SITE}/3": "self", f"{SITE}/3?v=1": "member"}
    alike = groups[f"{SITE}/alike", f"{SITE}/same", f"{SITE}/third"]
    assert (alike["representative"], alike["why"]) == (f"{SITE}/alike", "redirects")
    assert groups[f"{SITE}/4", f"{SITE}/4?v=1"]["why"] == "age"
    told = verb("duplicates", made).out
    assert f"3 pages, exact: {SITE}/alike (more URLs redirect to it)\n" in told


def test_links_decide_where_they_are_counted(verb: Verb, tmp_path: Path) -> None:
    def linked(target: str) -> Answer:
        found = {"/": ("/a", "/b", "/x", "/y"), "/x": ("/b",), "/y": ("/b", "/b")}.get(target)
        if target in ("/a", "/b"):
            return page("twin")
        return (404, "none") if found is None else page(target, *found)

    with serving(linked) as web:
        crawl(web, tmp_path / "c")
    for options, expected in (((), ("/a", "age")), (("--links",), ("/b", "links"))):
        (group,) = verb("duplicates", tmp_path / "c", "--json", *options).lines
        assert (group["representative"], group["why"]) == (SITE + expected[0], expected[1])


@pytest.mark.parametrize("choice", ["--near", "--similar"])
def test_two_near_duplicates_are_told_apart_by_their_words(verb: Verb, made: Path, choice: str) -> None:
    groups = verb("duplicates", made, choice, "--difference", "--json").lines
    (group,) = (
        each for each in groups if {member["url"] for member in each["members"]} == {f"{SITE}/one", f"{SITE}/two"}
    )
    changes = group["difference"]["changes"]
    assert [(change["removed"], change["added"]) for change in changes] in ([("one", "two")], [("two", "one")])
    assert "differs in 1 places:\n    word 301: -" in verb("duplicates", made, choice, "--difference").out


def test_groups_can_be_chosen_and_written(verb: Verb, made: Path, tmp_path: Path) -> None:
    file = tmp_path / "groups.jsonl"
    assert verb("duplicates", made, "--min", "3", "-o", file).code == 0
    (group,) = map(json.loads, file.read_text().splitlines())
    assert group["pages"] == 3
    assert verb("duplicates", made, "-o", file).code == USAGE
    assert verb("duplicates", made, "-o", file, "--force", "--limit", "1").code == 0
    assert verb("duplicates", made, "-o", tmp_path / "groups.csv").code == USAGE
    assert verb("duplicates", made, "--threshold", "0.8").code == USAGE
    assert verb("duplicates", made, "--similar", "--threshold", "0.8", "--limit", "1").code == 0
    assert verb("duplicates", made, "--host", "b.test").out == "no such groups\n"
    exact = verb("duplicates", made, "--exact", "--host", HOST, "--json").lines
    assert {each["likeness"] for each in exact} == {"exact"}
    assert len(exact) == 8
    assert verb("duplicates", made, "--exact", "--difference", "--limit", "1").out.endswith("the texts are equal\n")
    assert verb("duplicates", tmp_path / "none").code == USAGE


def test_one_page_of_each_group_is_exported(verb: Verb, made: Path, tmp_path: Path) -> None:
    file = tmp_path / "urls.txt"
    assert verb("export", made, "--state", "done", "--unique", "-o", file).code == 0
    kept = set(file.read_text().split())
    assert f"{SITE}/alike" in kept
    assert f"{SITE}/same" not in kept
    assert {f"{SITE}/one", f"{SITE}/two", f"{SITE}/"} <= kept
    assert len(kept & {f"{SITE}/4", f"{SITE}/4?v=1"}) == 1


def test_of_near_duplicates_one_represents_all_where_that_is_asked(made: Path) -> None:
    place = CrawlDirectory(made)
    with open_duplicates(place, settings_used(place)) as duplicates:
        copies = {copy.url: copy for copy in duplicates._groups.pages.pages()}
        pair = [copies[f"{SITE}/one"].id, copies[f"{SITE}/two"].id]
        assert [duplicates.represents(number) for number in pair] == [True, True]
        assert sorted(duplicates.represents(number, near=True) for number in pair) == [False, True]


def test_what_the_archive_does_not_have_is_told_and_stops_nothing(verb: Verb, directory: Path) -> None:
    for file in (directory / "archive").iterdir():
        file.write_bytes(b"")
    ran = verb("duplicates", directory, "--near", "--difference")
    assert ran.code == 0
    assert "the texts cannot be compared" in ran.out
    assert "captures could not be read" in ran.err


def test_reading_verbs_say_that_a_re_keying_is_not_finished(
    verb: Verb, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = rule_of(verb, directory)
    verb("rules", "learned", directory, "--accept", rule)

    class Killed(BaseException):
        """As if the process had died."""

    def die(*_: object) -> None:
        raise Killed

    with serving(site) as web:
        with monkeypatch.context() as patch:
            patch.setattr("crawlspace.app.learn._silent", die)
            with pytest.raises(Killed):
                crawl(web, directory)
        assert "a re-keying of this crawl is not finished (stage: " in verb("stats", directory).err
        assert crawl(web, directory).told == ["learned rules: applying site.test param v"]
        assert "not finished" not in verb("stats", directory).err
        assert rule_state(web, directory) is RuleState.APPLIED


def test_a_crawl_that_somebody_else_owns_is_left_alone(verb: Verb, directory: Path) -> None:
    verb("rules", "learned", directory, "--accept", rule_of(verb, directory))
    with CrawlDirectory(directory).locked(), serving(site) as web, pytest.raises(CrawlDirInUse):
        crawl(web, directory)
    assert "accepted" in verb("rules", "learned", directory).out


def rule_state(web: Web, directory: Path) -> RuleState:
    return crawl(web, directory).rules()["site.test param v"].state
