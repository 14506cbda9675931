"""The benchmark lies beside the package, not in it: its tests find it from the repository's root."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
