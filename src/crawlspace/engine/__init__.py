"""The working parts of a crawl: they know ports and pure rules, never a backend."""
