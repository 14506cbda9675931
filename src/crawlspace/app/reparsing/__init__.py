"""Parsing captures again from the archive: which ones, by whom, and what becomes of it. No request is ever sent."""
