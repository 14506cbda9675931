"""The learner of a crawl: what it listens to, and where it starts from."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from msgspec import Struct

from crawlspace.app.rules import rules_in
from crawlspace.app.store import Store
from crawlspace.engine.commit import Committer
from crawlspace.engine.crawl import Crawl
from crawlspace.engine.intake import Intake
from crawlspace.engine.learner import Learner
from crawlspace.engine.questions import Questions
from crawlspace.engine.visit import Run
from crawlspace.events import Ending
from crawlspace.policy.learning import Sighting
from crawlspace.settings import Settings
from crawlspace.types import Address, Relation
from crawlspace.urls import Identity, policy_from


class Lessons(Struct, frozen=True):
    """What a crawl learns from, and to what end."""

    settings: Settings
    store: Store
    identity: Identity
    intake: Intake
    rests: bool
    """The crawl ends when rules are to be applied, and whoever runs it goes on with it then."""
    remembered: Sequence[Sighting]
    """What was seen before that."""


@asynccontextmanager
async def learning(lessons: Lessons, committer: Committer, run: Run, loop: Crawl) -> AsyncIterator[Learner | None]:
    """Learn from what is settled meanwhile; what is not stored yet in the end is stored then."""
    settings = lessons.settings.learning
    if settings.mode == "off":
        yield None
        return
    rules = rules_in(await lessons.store.notes())
    learner = Learner(settings, lessons.store, lessons.identity)
    await learner.begin((await lessons.store.counts()).fetches, rules)
    learner.questions = questions = _questions(lessons, learner, run)
    questions.check(rules)
    run.askers = (*run.askers, questions)
    committer.settled = learner.settled
    if questions.checks:
        run.reader.see_page = questions.see_page
    # A run that may only take so long does not begin again.
    if lessons.rests and lessons.settings.budget.seconds is None:
        learner.ready = partial(loop.stop, Ending.LEARNED)
        learner.recall(lessons.remembered)
    yield learner
    await learner.flush()


def _questions(lessons: Lessons, learner: Learner, run: Run) -> Questions:
    without = Identity(policy_from(lessons.settings.identity))

    def allowed(address: Address) -> bool:
        return lessons.intake.scope.judge(address, depth=1, hops=0, relation=Relation.HYPERLINK) is None

    identities = (lessons.identity, without)
    return Questions(lessons.settings.learning, learner.learning, identities, run.reader.pages, allowed)
