// Crawlee for JavaScript as its documentation shows it: a CheerioCrawler whose handler enqueues every link.
//
// usage: node crawlee_crawler.mjs URL memory|disk CONCURRENCY
//
// No limit on the number of requests is set: it would also limit what is enqueued.

import { CheerioCrawler, Configuration, log } from "crawlee";

const [url, mode, concurrency] = process.argv.slice(2);

log.setLevel(log.LEVELS.OFF);

const crawler = new CheerioCrawler(
  {
    minConcurrency: Number(concurrency),
    maxConcurrency: Number(concurrency),
    maxRequestRetries: 0,
    requestHandler: ({ enqueueLinks }) => enqueueLinks(),
  },
  // Without the purge a second run goes on where the first one was killed.
  new Configuration({ persistStorage: mode === "disk", purgeOnStart: false }),
);

await crawler.run([url]);
