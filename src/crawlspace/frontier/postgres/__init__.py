"""The frontier of a fleet: one PostgreSQL schema for each crawl, any number of workers. Needs extra `postgres`."""

from crawlspace.frontier.postgres.place import Place
from crawlspace.frontier.postgres.store import PostgresFrontier

__all__ = ["Place", "PostgresFrontier"]
