"""Rules learned from what a crawl sees: what speaks for them, what against, and when that is enough."""

from __future__ import annotations

import pytest

from crawlspace.policy import learning as module
from crawlspace.policy.evidence import Evidence, LearningSettings, RuleState, is_sure, next_state
from crawlspace.policy.learning import Candidate, Learning, Sighting
from crawlspace.urls.variants import HostRule, RuleKind

SETTINGS = LearningSettings(pairs=3)
SLASH = HostRule(RuleKind.SLASH, "a.test")
ID = "cdc993a493e899bed04f4d0c8a462a0"


def text(of: object) -> bytes:
    return f"text {of}".encode()


def page(path: str, says: object, *, host: str = "a.test", declared: str | None = None) -> Sighting:
    where = None if declared is None else f"http://{host}{declared}"
    return Sighting(f"http://{host}{path}", text(says), declared=where)


def learned(*sightings: Sighting, settings: LearningSettings = SETTINGS) -> dict[HostRule, Candidate]:
    learning = Learning(settings)
    for sighting in sightings:
        learning.see(sighting)
    learning.judge()
    return {candidate.rule: candidate for candidate in learning.candidates()}


def slashes(count: int) -> list[Sighting]:
    return [page(path, n) for n in range(count) for path in (f"/{n}", f"/{n}/")]


def test_equal_texts_speak_for_the_rule_that_keeps_them_apart() -> None:
    found = learned(*slashes(3))[SLASH]
    assert (found.evidence.texts, found.evidence.against, found.evidence.kinds) == (3, 0, 3)
    assert found.state is RuleState.PROPOSED
    assert found.moved
    assert found.examples[0] == ("http://a.test/0/", "http://a.test/0")
    assert is_sure(found.rule, found.evidence, SETTINGS)


def test_redirects_and_canonicals_speak_for_it_too() -> None:
    moved = [Sighting(f"http://a.test/{n}", target=f"http://a.test/{n}/") for n in range(2)]
    found = learned(*moved, page("/7", 7, declared="/7/"), page("/8", 8, declared="/8"))[SLASH]
    assert found.evidence[:4] == (2, 1, 0, 0)
    assert found.state is RuleState.PROPOSED


def test_a_redirect_may_speak_for_two_rules_at_once() -> None:
    found = learned(Sighting("http://www.a.test/x", target="https://a.test/x"))
    assert set(found) == {HostRule(RuleKind.WWW, "www.a.test"), HostRule(RuleKind.SCHEME, "a.test")}


def test_pages_that_were_seen_before_a_rule_came_up_count_as_well() -> None:
    param = HostRule(RuleKind.PARAM, "a.test", "p")
    before = [page("/x?p=1", "x"), page("/x?p=2", "other"), page("/y?p=1", "y"), page("/y?p=2", "y")]
    assert learned(*before)[param].evidence[:4] == (0, 0, 1, 1)


@pytest.mark.parametrize(
    "against",
    [
        page("/9/", "something else"),
        Sighting.missing("http://a.test/9/"),
        Sighting.forbidden("http://a.test/9/"),
        Sighting("http://a.test/9/", target="http://a.test/login"),
    ],
)
def test_one_page_that_would_be_lost_keeps_a_rule_from_being_proposed(against: Sighting) -> None:
    found = learned(*slashes(4), page("/9", 9), against)[SLASH]
    assert found.evidence.against == 1
    assert found.against == [("http://a.test/9", "http://a.test/9/")]
    assert found.state is RuleState.WATCHED


def test_two_spellings_that_are_both_missing_say_nothing() -> None:
    both = [Sighting.missing("http://a.test/9"), Sighting.missing("http://a.test/9/")]
    assert learned(*slashes(3), *both)[SLASH].evidence[:4] == (0, 0, 3, 0)


def test_short_texts_speak_against_but_not_for() -> None:
    short = [page(path, "hi")._replace(weighty=False) for path in ("/a", "/a/")]
    other = page("/a/", "ho")._replace(weighty=False)
    assert learned(*slashes(3), *short)[SLASH].evidence.texts == 3
    assert learned(*slashes(3), short[0], other)[SLASH].evidence.against == 1


def test_a_page_is_not_held_against_itself_when_it_changes() -> None:
    for path in ("/0", "/0/"):
        assert learned(*slashes(3), page(path, "new"))[SLASH].evidence.against == 0
        assert learned(*slashes(3), page(path, "new"), page(path, "newer"))[SLASH].evidence.against == 0


def test_a_page_of_which_nothing_is_known_says_nothing() -> None:
    assert learned(*slashes(3), Sighting("http://a.test/0//"))[SLASH].evidence[:4] == (0, 0, 3, 0)


def test_few_examples_of_many_are_kept() -> None:
    found = learned(*slashes(9), *(page(f"/{n}//", "else") for n in range(9)))[SLASH]
    assert (len(found.examples), len(found.against)) == (3, 3)
    assert found.evidence.against == 9


def test_few_contradictions_among_many_pairs_are_borne() -> None:
    odd = [page("/9", 9), page("/9/", "else")]
    few = LearningSettings(pairs=3, contradictions=0.2)
    assert learned(*slashes(5), *odd, settings=few)[SLASH].state is RuleState.PROPOSED
    assert learned(*slashes(4), *odd, settings=few)[SLASH].state is RuleState.WATCHED


def test_pairs_that_all_say_the_same_are_no_sure_ground_but_for_random_ids() -> None:
    same = [page(f"/item?id={n}", "gone") for n in range(9)]
    found = learned(*same)[HostRule(RuleKind.PARAM, "a.test", "id")]
    assert found.state is RuleState.PROPOSED
    assert not is_sure(found.rule, found.evidence, SETTINGS)
    visits = [page(f"/room?visit={ID}{n:x}", "room") for n in range(9)]
    found = learned(*visits)[HostRule(RuleKind.PARAM, "a.test", "visit")]
    assert found.evidence.random == 8
    assert is_sure(found.rule, found.evidence, SETTINGS)


def test_equal_texts_with_other_links_are_no_sure_ground_but_for_whole_hosts() -> None:
    views = [page(f"/{n}{tail}", n)._replace(links=tail.encode()) for n in range(4) for tail in ("", "?print=1")]
    found = learned(*views)[HostRule(RuleKind.PARAM, "a.test", "print")]
    assert (found.state, found.evidence.unlike) == (RuleState.PROPOSED, 4)
    assert not is_sure(found.rule, found.evidence, SETTINGS)
    hosts = [
        page(f"/{n}", n, host=host)._replace(links=host.encode()) for n in range(4) for host in ("a.test", "m.test")
    ]
    (found,) = learned(*hosts).values()
    assert is_sure(found.rule, found.evidence, SETTINGS)


def test_what_was_seen_before_the_rules_changed_is_remembered_and_not_counted_again() -> None:
    before = Learning(SETTINGS)
    for sighting in [*slashes(2), Sighting("http://a.test/m", target="http://a.test/n")]:
        before.see(sighting)
    after = Learning(SETTINGS)
    after.restore(SLASH, RuleState.WATCHED, Evidence(texts=2))
    after.recall(before.pages(), lambda url: url.replace("http:", "https:"))
    after.see(Sighting("https://a.test/0//", text(0)))
    (found,) = after.candidates()
    assert found.evidence.texts == 3
    assert after.known("https://a.test/m") == Sighting("https://a.test/m", target="https://a.test/n")


def test_a_mirror_is_one_rule_whichever_host_was_seen_first() -> None:
    pages = [
        page(f"/{n}", n, host=host) for n in range(4) for host in (("m.test", "a.test"), ("a.test", "m.test"))[n % 2]
    ]
    found = {rule: each for rule, each in learned(*pages).items() if rule.kind is RuleKind.MIRROR}
    assert len(found) == 1
    (candidate,) = found.values()
    assert candidate.evidence.texts == 4
    assert candidate.state is RuleState.PROPOSED


def test_a_redirect_to_a_host_of_which_nothing_was_fetched_makes_no_mirror() -> None:
    moved = Sighting("http://old.a.test/x", target="http://a.test/x")
    assert learned(page("/y", 1, host="old.a.test"), moved) == {}
    found = learned(page("/y", 1, host="old.a.test"), page("/z", 2), moved)
    assert found[HostRule(RuleKind.MIRROR, "old.a.test", "a.test")].evidence.redirects == 1


def test_hosts_that_share_some_pages_and_differ_in_others_are_no_mirrors() -> None:
    pages = [page(f"/{n}", n, host=host) for n in range(4) for host in ("a.test", "m.test")]
    (found,) = learned(*pages, page("/x", 1, host="m.test"), page("/x", "own")).values()
    assert found.state is RuleState.WATCHED


def test_a_refuted_rule_stays_refuted() -> None:
    learning = Learning(SETTINGS)
    for sighting in slashes(3):
        learning.see(sighting)
    assert [each.state for each in learning.judge()] == [RuleState.PROPOSED]
    for sighting in (page("/9", 9), page("/9/", "else")):
        learning.see(sighting)
    assert [each.state for each in learning.judge()] == [RuleState.REFUTED]
    for n in range(20, 400):
        learning.see(page(f"/{n}", n))
        learning.see(page(f"/{n}/", n))
    assert learning.judge() == []


@pytest.mark.parametrize("state", [RuleState.APPLIED, RuleState.ACCEPTED])
def test_a_rule_in_effect_is_undone_by_two_counter_examples_not_by_one(state: RuleState) -> None:
    assert next_state(state, Evidence(texts=9, against=1), SETTINGS) is state
    assert next_state(state, Evidence(texts=9, against=2), SETTINGS) is RuleState.REFUTED
    assert next_state(state, Evidence(texts=900, against=2), SETTINGS) is state


@pytest.mark.parametrize("state", [RuleState.REJECTED, RuleState.REFUTED])
def test_what_is_decided_stays(state: RuleState) -> None:
    assert next_state(state, Evidence(texts=900), SETTINGS) is state


def test_a_hosts_own_answer_makes_up_for_pairs_but_not_for_the_first() -> None:
    found = learned(*slashes(1))[SLASH]
    assert found.state is RuleState.WATCHED
    found.confirm()
    assert next_state(found.state, found.evidence, SETTINGS) is RuleState.PROPOSED
    assert next_state(RuleState.WATCHED, Evidence(confirmed=1), SETTINGS) is RuleState.WATCHED


def test_confidence_grows_with_pairs_and_falls_with_counter_examples() -> None:
    assert Evidence().confidence == 0.5
    assert Evidence(texts=8).confidence == 0.9
    assert Evidence(texts=8, against=1).confidence < Evidence(texts=8).confidence


def test_stored_evidence_goes_on_and_keeps_what_was_seen_since() -> None:
    learning = Learning(SETTINGS)
    for sighting in slashes(2):
        learning.see(sighting)
    learning.restore(SLASH, RuleState.WATCHED, Evidence(redirects=4, kinds=3))
    learning.restore(HostRule(RuleKind.CASE, "a.test"), RuleState.REJECTED, Evidence())
    assert [each.rule for each in learning.judge()] == [SLASH]
    learning.restore(SLASH, RuleState.WATCHED, Evidence(redirects=4))
    found = {each.rule: each for each in learning.candidates()}
    assert found[SLASH].evidence[:4] == (4, 0, 2, 0)
    assert found[SLASH].state is RuleState.PROPOSED
    assert found[HostRule(RuleKind.CASE, "a.test")].state is RuleState.REJECTED


def test_what_was_seen_lately_can_be_asked() -> None:
    learning = Learning(SETTINGS)
    for sighting in slashes(1):
        learning.see(sighting)
    assert learning.known("http://a.test/0") == page("/0", 0)
    assert learning.candidate(SLASH) in learning.candidates()
    assert learning.candidate(HostRule(RuleKind.CASE, "a.test")) is None
    assert learning.known("http://a.test/1") is None
    assert learning.known("http://b.test/") is None
    assert list(learning.pages_of("a.test")) == [page("/0/", 0), page("/0", 0)]
    assert list(learning.pages_of("b.test")) == []


# -- bounds -------------------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("PAGES_OF_HOST", 3), ("PAGES", 5), ("CANDIDATES", 2), ("OF_HOST", 2), ("FORMS", 2)):
        monkeypatch.setattr(module, name, value)


def test_pages_and_hosts_that_were_seen_longest_ago_are_forgotten(small: None) -> None:
    learning = Learning(SETTINGS)
    for n in range(5):
        learning.see(page(f"/{n}", n))
    assert list(learning.pages_of("a.test")) == [page(f"/{n}", n) for n in (4, 3, 2)]
    learning.see(page("/", 1, host="b.test"))
    learning.see(page("/x", 2, host="b.test"))
    assert len(list(learning.pages_of("a.test"))) == 3
    learning.see(page("/y", 3, host="b.test"))
    assert list(learning.pages_of("a.test")) == []
    assert len(learning._everywhere) <= 5
    assert len(learning._hosts["b.test"].by_text) == 3


def test_a_page_seen_again_with_another_text_is_known_by_that_alone() -> None:
    learning = Learning(SETTINGS)
    learning.see(page("/x", "old"))
    learning.see(page("/x", "new"))
    assert set(learning._hosts["a.test"].by_text) == {text("new")}


def test_of_too_many_rules_the_poorest_give_way(small: None) -> None:
    learning = Learning(SETTINGS)
    for n in range(2):
        for sighting in (page(f"/{n}", n), page(f"/{n}/", n)):
            learning.see(sighting)
    learning.see(Sighting("http://a.test/x?p=1", target="http://a.test/x"))
    learning.see(Sighting("http://a.test/x?q=1", target="http://a.test/x"))
    assert {str(each.rule) for each in learning.candidates()} == {"a.test slash", "a.test param q"}
    learning.see(Sighting("http://c.test/x?q=1", target="http://c.test/x"))
    assert {str(each.rule) for each in learning.candidates()} == {"a.test param q", "c.test param q"}
    learning.see(Sighting("http://d.test/x?q=1", target="http://d.test/x"))
    assert {name: len(each) for name, each in learning._of_name.items()} == {"c.test": 1, "d.test": 1}


def test_a_rule_compares_with_its_latest_pages_only(small: None) -> None:
    found = learned(*slashes(2), page("/0/", "changed"), page("/2", 2), page("/3", 3), page("/0", "else"))[SLASH]
    assert found.evidence.against == 0


VIEW = HostRule(RuleKind.VIEW, "a.test", "print")


def view(path: str, says: object, main: object) -> Sighting:
    return page(path, says)._replace(main=b"" if main is None else text(main))


def test_pages_whose_own_words_are_those_of_their_print_views_speak_for_a_rule_that_a_person_decides_on() -> None:
    pairs = [each for n in range(3) for each in (view(f"/{n}", n, n), view(f"/{n}/print", f"print {n}", n))]
    found = learned(*pairs)
    assert set(found) == {VIEW}
    assert found[VIEW].evidence[:5] == (0, 0, 3, 0, 3)
    assert found[VIEW].state is RuleState.PROPOSED
    assert not is_sure(VIEW, found[VIEW].evidence, SETTINGS)


def test_a_view_with_other_words_or_that_is_missing_speaks_against_it() -> None:
    pair = [view("/1", 1, 1), view("/1/print", 2, 1)]
    assert learned(*pair, view("/2", 2, 2), view("/2/print", 3, 3))[VIEW].evidence[:4] == (0, 0, 1, 1)
    missing = Sighting.missing("http://a.test/2/print")
    assert learned(*pair, view("/2", 2, 2), missing)[VIEW].evidence[:4] == (0, 0, 1, 1)
    assert learned(*pair, view("/2", 2, None), missing)[VIEW].evidence[:4] == (0, 0, 1, 0), "it has no view"


def test_equal_words_speak_for_no_other_rule_and_short_ones_for_none() -> None:
    assert learned(view("/1?p=1", 1, 1), view("/1?p=2", 2, 1)) == {}
    short = [view(path, path, 1)._replace(weighty=False) for path in ("/1", "/1/print")]
    assert learned(*short) == {}
