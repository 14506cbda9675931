"""Fetching: requests out, answers in, within limits and past the address guard."""

from crawlspace.fetch.http import HttpFetcher
from crawlspace.fetch.limits import FetchSettings
from crawlspace.fetch.resolve import NetworkSettings

__all__ = ["FetchSettings", "HttpFetcher", "NetworkSettings"]
