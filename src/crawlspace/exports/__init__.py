"""Formats that other programs read, written as a stream: tables, graphs, sitemaps, packages of web archives.

Nothing here knows a crawl, its store or its archive: rows and bytes come in, a file's bytes go out.
"""
