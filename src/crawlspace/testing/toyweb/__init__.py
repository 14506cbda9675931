"""A deterministic web of named hosts that replaces the network in tests, demos and benchmarks.

`ToyWeb` serves it on 127.0.0.1, `Truth` says what a right crawl finds, and the audits judge the requests that came.
`python -m crawlspace.testing.toyweb` serves it until Ctrl-C. Nothing here is used by a crawl of the real web.
"""

from crawlspace.testing.toyweb.audit import fetched_twice, politeness, robots_not_first, trespasses
from crawlspace.testing.toyweb.certificates import available as tls_available
from crawlspace.testing.toyweb.log import Request, read_log
from crawlspace.testing.toyweb.recipe import CALM, EVERYTHING, LIGHT, TRAPS, WAITS, Feature, Recipe, Size
from crawlspace.testing.toyweb.truth import Difference, FoundTrap, Page, Truth
from crawlspace.testing.toyweb.web import ToyWeb

__all__ = [
    "CALM",
    "EVERYTHING",
    "LIGHT",
    "TRAPS",
    "WAITS",
    "Difference",
    "Feature",
    "FoundTrap",
    "Page",
    "Recipe",
    "Request",
    "Size",
    "ToyWeb",
    "Truth",
    "fetched_twice",
    "politeness",
    "read_log",
    "robots_not_first",
    "tls_available",
    "trespasses",
]
