"""What every frontier must do about learned rules: inherit the suite beside the frontier's own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, cast

from msgspec.structs import replace

from crawlspace.policy.evidence import Evidence, Lesson, RuleState
from crawlspace.ports import Learned
from crawlspace.testing.frontier_contract_words import T0, FrontierSuite, Store, address, finished, links, seen, wish
from crawlspace.urls.variants import HostRule, RuleKind

SLASH = HostRule(RuleKind.SLASH, "a.test")
PAIR = (("http://a.test/x", "http://a.test/x/"),)


class LearnedStore(Store, Learned, Protocol):
    """What this contract is about."""


class LearnedContract(FrontierSuite):
    """Rules with their evidence, and what pages declare."""

    def learn(self, story: Callable[[LearnedStore], Awaitable[None]]) -> None:
        """Run one test's coroutine on a fresh store."""
        self.play(lambda store: story(cast(LearnedStore, store)))

    def test_lessons_add_up_and_a_state_moves_only_from_where_it_was_seen(self) -> None:
        async def story(store: LearnedStore) -> None:
            assert await store.learned() == []
            await store.learn([Lesson(SLASH, Evidence(texts=2, kinds=2), PAIR)], T0)
            proposed = RuleState.PROPOSED
            await store.learn(
                [Lesson(SLASH, Evidence(texts=3, against=1, kinds=1), (), PAIR, state=proposed)], T0 + 5
            )
            (rule,) = await store.learned()
            assert rule.rule == SLASH
            assert rule.evidence == Evidence(texts=5, against=1, kinds=2)
            assert (rule.state, rule.examples, rule.against) == (proposed, PAIR, PAIR)
            assert (rule.first_at, rule.last_at) == (T0, T0 + 5)
            await store.learn([Lesson(SLASH, was=proposed, state=RuleState.REJECTED)], T0 + 6)
            await store.learn([Lesson(SLASH, Evidence(texts=1), was=proposed, state=RuleState.REFUTED)], T0 + 7)
            (rule,) = await store.learned()
            assert (rule.state, rule.evidence.texts) == (RuleState.REJECTED, 6)

        self.learn(story)

    def test_rules_that_are_more_than_watched_come_first_then_the_best_founded(self) -> None:
        async def story(store: LearnedStore) -> None:
            rules = [HostRule(RuleKind.CASE, f"{name}.test") for name in "abc"]
            lessons = [Lesson(rule, Evidence(texts=n)) for n, rule in enumerate(rules)]
            lessons[0] = lessons[0]._replace(state=RuleState.APPLIED)
            await store.learn(lessons, T0)
            assert [each.rule.host for each in await store.learned()] == ["a.test", "c.test", "b.test"]

        self.learn(story)

    def test_what_a_page_declares_is_kept_as_it_was_seen(self) -> None:
        async def story(store: LearnedStore) -> None:
            claims = links(4)
            await store.claim(claims, T0)
            (lease,) = await store.lease(wish(), T0)
            told = dict(zip([each.address.fetch_url for each in claims], [None, "", "http://b.test/"], strict=False))
            settlements = []
            for url in lease.urls:
                canonical = told.get(url.url)
                declared = url.url if canonical == "" else canonical
                settlements.append(finished(lease, url, replace(seen(), canonical=declared)))
            await store.settle(settlements, [], T0)
            stale = [replace(each, token=each.token + 1, evidence=seen()) for each in settlements]
            await store.settle(stale, [], T0)
            keys = [each.address.key for each in claims]
            assert await store.declared([*keys, address("unknown").key]) == [None, "", "http://b.test/", None, None]

        self.learn(story)
