"""The learner of a crawl: what it listens to, and where it starts from."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from crawlspace.app.rules import rules_in
from crawlspace.engine.commit import Committer
from crawlspace.engine.crawl import Crawl
from crawlspace.engine.learner import Learner
from crawlspace.engine.questions import Questions
from crawlspace.engine.visit import Run
from crawlspace.events import Ending
from crawlspace.types import Address, Relation
from crawlspace.urls import Identity, policy_from

if TYPE_CHECKING:
    from crawlspace.app.compose import OpenCrawl


@asynccontextmanager
async def learning(crawl: OpenCrawl, committer: Committer, run: Run, loop: Crawl) -> AsyncIterator[None]:
    """Learn from what is settled meanwhile; what is not stored yet in the end is stored then."""
    settings = crawl.plan.settings.learning
    if settings.mode == "off":
        yield
        return
    rules = rules_in(await crawl.frontier.notes())
    learner = Learner(settings, crawl.frontier, crawl.identity)
    without = Identity(policy_from(crawl.plan.settings.identity))

    def allowed(address: Address) -> bool:
        return crawl.intake.scope.judge(address, depth=1, hops=0, relation=Relation.HYPERLINK) is None

    questions = Questions(settings, learner.learning, (crawl.identity, without), run.reader.pages, allowed)
    questions.check(rules)
    await learner.begin((await crawl.frontier.counts()).fetches, rules)
    learner.questions = questions
    run.askers = (*run.askers, questions)
    committer.settled = learner.settled
    if questions.checks:
        run.reader.see_page = questions.see_page
    if crawl.rests:
        learner.ready = partial(loop.stop, Ending.LEARNED)
        learner.recall(crawl.remembered)
    yield
    crawl.remembered = tuple(learner.learning.pages())
    await learner.flush()
