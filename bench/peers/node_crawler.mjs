// node-crawler: it follows no links by itself, so the callback does, with the URL class and a Set of what was seen.
//
// usage: node node_crawler.mjs URL CONCURRENCY

import Crawler from "crawler";

const [start, concurrency] = process.argv.slice(2);
const origin = `${new URL(start).origin}/`;
const seen = new Set([start]);

const crawler = new Crawler({
  maxConnections: Number(concurrency),
  retries: 0,
  silence: true,
  callback(error, response, done) {
    if (!error && response.$) {
      response.$("a[href]").each((_, anchor) => follow(response.$(anchor).attr("href"), response.options.url));
    }
    done();
  },
});

function follow(href, base) {
  if (!URL.canParse(href, base)) return;
  const url = new URL(href, base);
  url.hash = "";
  if (url.href.startsWith(origin) && !seen.has(url.href)) {
    seen.add(url.href);
    crawler.add(url.href);
  }
}

crawler.on("drain", () => process.exit(0));
crawler.add(start);
