"""The parts of an import: what a source holds, and how it becomes known to a crawl without being fetched again."""
