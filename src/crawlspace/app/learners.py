"""The learner of a crawl, as its settings and its store have it."""

from __future__ import annotations

from crawlspace.app.rules import rules_in
from crawlspace.app.store import Store
from crawlspace.engine.learner import Learner
from crawlspace.policy.evidence import LearningSettings
from crawlspace.urls import Identity


async def learner_of(settings: LearningSettings, store: Store, identity: Identity) -> Learner | None:
    """What learns from a crawl's pages; None when nothing is to be learned."""
    if settings.mode == "off":
        return None
    learner = Learner(settings, store, identity)
    await learner.begin((await store.counts()).fetches, rules_in(await store.notes()))
    return learner
