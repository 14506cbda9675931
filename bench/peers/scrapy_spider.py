"""Scrapy as its documentation shows it: LinkExtractor, one request for each link, robots rules and retries off.

usage: scrapy_spider.py URL CONCURRENCY [JOBDIR [PAGES]]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse, Response
from scrapy.linkextractors import LinkExtractor


class SiteSpider(scrapy.Spider):
    """Follows every link of one host."""

    name = "site"

    def __init__(self, url: str) -> None:
        super().__init__(start_urls=[url])
        self._links = LinkExtractor(allow_domains=[urlsplit(url).netloc])

    def parse(self, response: Response, **_: Any) -> Iterator[scrapy.Request]:
        if isinstance(response, HtmlResponse):
            for link in self._links.extract_links(response):
                yield response.follow(link)


def main(url: str, concurrency: str, job: str = "", pages: str = "0") -> None:
    settings: dict[str, Any] = {
        "CONCURRENT_REQUESTS": int(concurrency),
        "CONCURRENT_REQUESTS_PER_DOMAIN": int(concurrency),
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": False,
        "RETRY_ENABLED": False,
        "COOKIES_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "ERROR",
        "CLOSESPIDER_PAGECOUNT": int(pages),
    }
    if job:
        settings["JOBDIR"] = job
    process = CrawlerProcess(settings)
    process.crawl(SiteSpider, url=url)
    process.start()


if __name__ == "__main__":
    main(*sys.argv[1:])
