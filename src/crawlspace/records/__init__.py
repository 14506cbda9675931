"""Records: what parsers made of captures, kept with their history, and asked in SQL.

`journal` takes them as they come, `fold` makes columns of them, `views` answers questions.
"""

from __future__ import annotations

from crawlspace.records.fold import Folded, fold
from crawlspace.records.rules import Rules
from crawlspace.records.sink import Records

__all__ = ["Folded", "Records", "Rules", "fold"]
