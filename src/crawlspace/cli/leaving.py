"""How the command ends when signals come meanwhile."""

from __future__ import annotations

import signal

ENDING = (signal.SIGINT, signal.SIGTERM)


def undisturbed() -> None:
    """Hear no signal that asks to end any more: the exit code is decided, and what is left to do takes a moment."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
