"""The parts of an export: what is wanted, rows made of what a crawl knows, captures as other programs read them."""
