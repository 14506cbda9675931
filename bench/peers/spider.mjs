// spider, a crawler in Rust, by its package for Node; its callback is given every page, as a user's program would be.
//
// usage: node spider.mjs URL

import { Website } from "@spider-rs/spider-rs";

let pages = 0;

await new Website(process.argv[2]).crawl((error) => {
  pages += error ? 0 : 1;
});
console.log(`${pages} pages`);
process.exit(0);
