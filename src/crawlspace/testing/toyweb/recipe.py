"""What kind of toy web is wanted: its seed, its size, and which of its peculiarities.

Everything that the web contains follows from one `Recipe`: equal recipes give equal webs, byte for byte.
"""

from __future__ import annotations

import random
from enum import StrEnum, unique

from msgspec import Struct


@unique
class Size(StrEnum):
    """How many pages there are, traps not counted."""

    TINY = "tiny"
    """About 60 pages: a crawl that is begun and killed many times."""
    SMALL = "small"
    """About 150 pages: a test that ends within seconds."""
    DEMO = "demo"
    """About 300 pages: something to look at for a minute."""
    LARGE = "large"
    """More than 1,000 pages on a dozen hosts: something to kill in the middle."""


class Extent(Struct, frozen=True):
    """The counts behind a size."""

    products: int
    guides: int
    months: int
    days: int
    """News days in each month."""
    books: int
    threads: int
    shelves: int
    """Plain hosts, for numbers."""
    items: int
    """Pages on each shelf."""
    facet_values: int
    """Values of each of the three facets."""


EXTENTS = {
    Size.TINY: Extent(8, 4, 2, 2, 3, 3, 0, 0, 2),
    Size.SMALL: Extent(32, 8, 2, 10, 10, 8, 0, 0, 2),
    Size.DEMO: Extent(80, 14, 3, 14, 20, 12, 2, 12, 3),
    Size.LARGE: Extent(150, 20, 4, 14, 30, 20, 8, 110, 4),
}


@unique
class Feature(StrEnum):
    """A peculiarity that can be left out."""

    SPELLINGS = "spellings"
    """Links to one page under many spellings that the safe URL rules fold."""
    OWN_FOLDS = "own_folds"
    """A forum whose spellings only a rule of its own can fold: see `Truth.own_folds`."""
    ALIASES = "aliases"
    """`www.` and, with TLS, http: permanent redirects to the one right address."""
    IDN = "idn"
    """A seed with a non-ASCII name, a legacy encoding and non-ASCII paths and queries."""
    MIRROR = "mirror"
    """A host that repeats part of another, byte for byte, and print views of the same text."""
    FRAMES = "frames"
    """Frame sets, inline frames and meta refresh."""
    CALENDAR = "calendar"
    """Trap: next month, for ever."""
    FACETS = "facets"
    """Trap: every combination of filters is a URL, in any order of parameters."""
    SESSIONS = "sessions"
    """Trap: each page hands out a link with a fresh visitor number."""
    DEEPENING = "deepening"
    """Trap: a relative link that makes the path longer each time."""
    SOFT_404 = "soft_404"
    """A host that answers 200 with "not found" for whatever it does not have."""
    STATUSES = "statuses"
    """404, 410 and a redirect without a target."""
    THROTTLES = "throttles"
    """429 and 503 with Retry-After in both forms, once, then the page."""
    FLAKY = "flaky"
    """500 twice and then the page; 500 always."""
    REDIRECTS = "redirects"
    """A chain of five, a circle, one into itself, one out of scope, one behind a robots fence."""
    COOKIE = "cookie"
    """A redirect to itself that ends once the cookie comes back."""
    MOVED_SEED = "moved_seed"
    """A seed that moved to another domain for good."""
    ROBOTS = "robots"
    """Robots files with rules, Crawl-delay, a redirect, HTML, or everything forbidden."""
    ROBOTS_HUGE = "robots_huge"
    """A robots file of 700 KB."""
    ROBOTS_DOWN = "robots_down"
    """A host whose robots.txt is always 503: nothing else may be asked of it."""
    CODINGS = "codings"
    """gzip, deflate, chunked, until-close, a wrong gzip label and wrong or missing content types."""
    SLOW = "slow"
    """An answer that takes half a second, and one that comes in drops."""
    CUT = "cut"
    """A body that ends before its Content-Length."""
    OVERSIZED = "oversized"
    """A body of 20 MB."""
    FORM = "form"
    """A POST endpoint whose answer depends on the body."""
    DEAD = "dead"
    """A host that refuses connections."""
    MUTE = "mute"
    """A host that accepts a request and never answers."""
    DYING = "dying"
    """A host that answers three requests and then resets every connection."""


EVERYTHING = frozenset(Feature)
TRAPS = frozenset({Feature.CALENDAR, Feature.FACETS, Feature.SESSIONS, Feature.DEEPENING})
WAITS = frozenset(
    {
        Feature.THROTTLES,
        Feature.FLAKY,
        Feature.ROBOTS_DOWN,
        Feature.SLOW,
        Feature.CUT,
        Feature.DEAD,
        Feature.MUTE,
        Feature.DYING,
    }
)
"""What a right crawler must wait for: retries, probes, time-outs."""
CALM = EVERYTHING - TRAPS - WAITS
"""Nothing endless and nothing to wait for: one pass over the pages ends the crawl."""
LIGHT = CALM - {Feature.OVERSIZED, Feature.ROBOTS_HUGE}
"""Calm, without the body of 20 MB and the robots file of 700 KB: to read those takes as long as to read 600 pages."""


class Recipe(Struct, frozen=True):
    """All that decides what is in the web."""

    seed: int = 1
    size: Size = Size.SMALL
    tls: bool = True
    features: frozenset[Feature] = EVERYTHING

    @property
    def extent(self) -> Extent:
        return EXTENTS[self.size]

    def chance(self, *key: object) -> random.Random:
        """Randomness that depends on the seed and on `key`, and on nothing else."""
        return random.Random(f"{self.seed}/" + "/".join(map(str, key)))
