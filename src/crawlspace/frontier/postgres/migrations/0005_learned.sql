-- Rules of identity that were learned from what a crawl has seen.

-- What speaks for each rule and against it, added up over all workers. Examples are JSON arrays of pairs of URLs.
CREATE TABLE learned (
  host text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  detail text COLLATE "C" NOT NULL,
  state text NOT NULL CHECK (state IN ('watched', 'proposed', 'accepted', 'applied', 'rejected', 'refuted')),
  redirects bigint NOT NULL,
  canonicals bigint NOT NULL,
  texts bigint NOT NULL,
  against bigint NOT NULL,
  kinds bigint NOT NULL,
  random bigint NOT NULL,
  confirmed bigint NOT NULL,
  unlike bigint NOT NULL,
  examples text NOT NULL,
  counter_examples text NOT NULL,
  first_at bigint NOT NULL,
  last_at bigint NOT NULL,
  PRIMARY KEY (host, kind, detail)
);

-- What a page declares as its own address, as it was seen; empty where it is its own.
CREATE TABLE declared (
  id bigint NOT NULL,
  shard smallint NOT NULL,
  canonical text NOT NULL,
  PRIMARY KEY (shard, id)
);
