"""A polite web crawler that fetches every page once, loses nothing when killed, and explains every decision."""

__version__ = "0.1.0"
