-- Rules of identity that were learned from what a crawl has seen.

-- What speaks for each rule and against it. `examples` and `counter_examples` are JSON arrays of pairs of URLs.
CREATE TABLE learned (
  host TEXT NOT NULL,
  kind TEXT NOT NULL,
  detail TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('watched', 'proposed', 'accepted', 'applied', 'rejected', 'refuted')),
  redirects INTEGER NOT NULL,
  canonicals INTEGER NOT NULL,
  texts INTEGER NOT NULL,
  against INTEGER NOT NULL,
  kinds INTEGER NOT NULL,
  random INTEGER NOT NULL,
  confirmed INTEGER NOT NULL,
  unlike INTEGER NOT NULL,
  examples TEXT NOT NULL,
  counter_examples TEXT NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  PRIMARY KEY (host, kind, detail)
) STRICT, WITHOUT ROWID;

-- What a page declares as its own address, as it was seen; empty where it is its own.
CREATE TABLE declared (
  id INTEGER PRIMARY KEY,
  canonical TEXT NOT NULL
) STRICT;
