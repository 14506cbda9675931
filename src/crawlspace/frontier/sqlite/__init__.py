"""The embedded frontier: one SQLite file in the crawl directory."""

from crawlspace.frontier.settings import Durability, FrontierSettings
from crawlspace.frontier.sqlite.store import SqliteFrontier

__all__ = ["Durability", "FrontierSettings", "SqliteFrontier"]
