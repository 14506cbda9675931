"""The whole crawl as a deterministic simulation: real engine, real store, made-up web, time and faults.

One seed decides everything: the web, who dies when, which disk is full for how long, whose answer is lost. The
history of all effects is held against the invariants, named as in the design (I1, I2, ...), while it happens; then
the faults stop, the crawl runs to its end and is compared with what the web is known to hold.

`python -m crawlspace.testing.sim --seed N` repeats one seed. Nothing here waits for real time.
"""

from crawlspace.testing.sim.history import Violation
from crawlspace.testing.sim.world import Report, Size, simulate

__all__ = ["Report", "Size", "Violation", "simulate"]
