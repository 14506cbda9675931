"""The values that travel between the parts. All are frozen; none knows how it is stored or fetched.

What is made once per link is a named tuple, what is made once per page a slotted dataclass: a page has
hundreds of links, and most of them are repeats that are dropped as soon as they have a key.
Times are integer milliseconds since 1970 UTC unless a name says otherwise.
"""

from __future__ import annotations

from crawlspace.types.content import (
    Copied,
    PageContent,
    Probe,
    ShapeFigures,
    Verdict,
    Yield,
)
from crawlspace.types.figures import (
    Counts,
    DeadLetter,
    HostFigures,
    RouteFigures,
    Story,
)
from crawlspace.types.identity import (
    FINGERPRINT_BYTES,
    HOST_BYTES,
    Address,
    RequestSpec,
    Unusable,
    host_id,
)
from crawlspace.types.leases import (
    Attempt,
    Crew,
    Lease,
    LeasedHost,
    Pace,
    QueuedUrl,
    Wish,
)
from crawlspace.types.links import (
    PATH_DEPENDENT,
    Claim,
    Claimed,
    Link,
    Reason,
    Relation,
)
from crawlspace.types.pointers import Joined, Pointer
from crawlspace.types.records import Captured
from crawlspace.types.revisits import Again, Before, GenerationFigures, Plan, Round
from crawlspace.types.settlements import (
    Adopted,
    Answer,
    Died,
    Evidence,
    Fingerprints,
    Finished,
    Moved,
    ProcessingFailed,
    Refused,
    Released,
    Rerouted,
    RetryAt,
    Settlement,
    Unchanged,
    WasRedirect,
)

__all__ = [
    "FINGERPRINT_BYTES",
    "HOST_BYTES",
    "PATH_DEPENDENT",
    "Address",
    "Adopted",
    "Again",
    "Answer",
    "Attempt",
    "Before",
    "Captured",
    "Claim",
    "Claimed",
    "Copied",
    "Counts",
    "Crew",
    "DeadLetter",
    "Died",
    "Evidence",
    "Fingerprints",
    "Finished",
    "GenerationFigures",
    "HostFigures",
    "Joined",
    "Lease",
    "LeasedHost",
    "Link",
    "Moved",
    "Pace",
    "PageContent",
    "Plan",
    "Pointer",
    "Probe",
    "ProcessingFailed",
    "QueuedUrl",
    "Reason",
    "Refused",
    "Relation",
    "Released",
    "RequestSpec",
    "Rerouted",
    "RetryAt",
    "Round",
    "RouteFigures",
    "Settlement",
    "ShapeFigures",
    "Story",
    "Unchanged",
    "Unusable",
    "Verdict",
    "WasRedirect",
    "Wish",
    "Yield",
    "host_id",
]
