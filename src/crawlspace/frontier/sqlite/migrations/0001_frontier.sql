-- The first format. Four kinds of state stay apart: `seen` only grows, `queue` and `delayed` are small and hot,
-- `lease` lives for minutes, `outcome` is written once a visit. Times are milliseconds since 1970 UTC.
-- A URL's key is the six bytes of its host's number (`hid`) and ten more (`tail`).

-- Facts of the crawl, and the number of this format.
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Numbers that are given out once: URLs and lease tokens.
CREATE TABLE serial (
  name TEXT PRIMARY KEY,
  last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Totals as transactional deltas: the states, named as in states.py, and figures. Nothing is ever counted by a scan.
CREATE TABLE tally (
  name TEXT PRIMARY KEY,
  n INTEGER NOT NULL CHECK (n >= 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE host (
  hid INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  seed INTEGER NOT NULL DEFAULT 0 CHECK (seed IN (0, 1)),
  -- A URL of it was queued at least once; hosts known from refusals alone are not counted and not listed.
  met INTEGER NOT NULL DEFAULT 0 CHECK (met IN (0, 1)),
  -- Has URLs in the queue and is not parked. Flips rarely: the index of due hosts hangs on it.
  ready INTEGER NOT NULL DEFAULT 0 CHECK (ready = (n_queued > 0 AND parked IS NULL)),
  parked TEXT,
  -- The class of its dead letters while a host that was given up is being emptied.
  condemned TEXT CHECK (condemned IS NULL OR parked IS NOT NULL),
  -- Best class with queued URLs.
  class INTEGER NOT NULL DEFAULT 0 CHECK (class BETWEEN 0 AND 9),
  next_at INTEGER NOT NULL DEFAULT 0,
  token INTEGER CHECK ((token IS NULL) = (lease_until IS NULL)),
  lease_until INTEGER,
  worker INTEGER,
  -- The last token whose holder gave it back itself: a repeated release is known by it.
  released INTEGER,
  -- NULL until its first visit ends: the setting holds.
  delay_ms INTEGER,
  crawl_delay_ms INTEGER,
  failures INTEGER NOT NULL DEFAULT 0,
  slowed INTEGER NOT NULL DEFAULT 0,
  -- Rows in queue, leased ones included; those of them leased; rows in delayed.
  n_queued INTEGER NOT NULL DEFAULT 0 CHECK (n_queued >= n_leased),
  n_leased INTEGER NOT NULL DEFAULT 0 CHECK (n_leased >= 0 AND (n_leased = 0 OR token IS NOT NULL)),
  n_delayed INTEGER NOT NULL DEFAULT 0 CHECK (n_delayed >= 0),
  fetched INTEGER NOT NULL DEFAULT 0 CHECK (fetched >= 0),
  done INTEGER NOT NULL DEFAULT 0 CHECK (done >= 0),
  dead INTEGER NOT NULL DEFAULT 0 CHECK (dead >= 0)
) STRICT;
CREATE INDEX host_due ON host (class, next_at) WHERE ready AND token IS NULL;
CREATE INDEX host_leased ON host (lease_until) WHERE token IS NOT NULL;
CREATE INDEX host_parked ON host (parked, seed, fetched) WHERE parked IS NOT NULL;
CREATE INDEX host_name ON host (name) WHERE met;

-- Every key ever claimed and its number in order of arrival.
CREATE TABLE seen (
  fp BLOB PRIMARY KEY,
  id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- URLs that wait for their host. A row stays while it is leased: it is written twice in its life.
-- `settled` is the last lease that sent it back here, `relation` NULL for a hyperlink.
CREATE TABLE queue (
  hid INTEGER NOT NULL,
  class INTEGER NOT NULL CHECK (class BETWEEN 0 AND 9),
  id INTEGER NOT NULL,
  tail BLOB NOT NULL,
  url TEXT NOT NULL,
  depth INTEGER NOT NULL,
  hops INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  parent INTEGER,
  relation TEXT,
  found_at INTEGER NOT NULL,
  suspect INTEGER NOT NULL,
  label TEXT,
  meta TEXT,
  request BLOB,
  history TEXT,
  generation INTEGER NOT NULL,
  settled INTEGER,
  PRIMARY KEY (hid, class, id)
) STRICT, WITHOUT ROWID;

-- URLs that wait for a time of their own.
CREATE TABLE delayed (
  due_at INTEGER NOT NULL,
  hid INTEGER NOT NULL,
  class INTEGER NOT NULL CHECK (class BETWEEN 0 AND 9),
  id INTEGER NOT NULL,
  tail BLOB NOT NULL,
  url TEXT NOT NULL,
  depth INTEGER NOT NULL,
  hops INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  parent INTEGER,
  relation TEXT,
  found_at INTEGER NOT NULL,
  suspect INTEGER NOT NULL,
  label TEXT,
  meta TEXT,
  request BLOB,
  history TEXT,
  generation INTEGER NOT NULL,
  settled INTEGER,
  PRIMARY KEY (due_at, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX delayed_url ON delayed (id);
CREATE INDEX delayed_host ON delayed (hid);

-- What a lost lease held: a JSON array of [class, id].
CREATE TABLE lease (
  token INTEGER PRIMARY KEY,
  hid INTEGER NOT NULL UNIQUE,
  urls TEXT NOT NULL
) STRICT;

-- Files of the archive, and how far settled captures reach into them.
CREATE TABLE segment (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  length INTEGER NOT NULL
) STRICT;

-- URLs with nothing left to do, and why. `class` is where a revived URL queues again, `token` the lease that settled it,
-- `requested_at` NULL when no request was made. States as in states.py.
CREATE TABLE outcome (
  id INTEGER PRIMARY KEY,
  hid INTEGER NOT NULL,
  class INTEGER NOT NULL CHECK (class BETWEEN 0 AND 9),
  tail BLOB NOT NULL,
  url TEXT NOT NULL,
  depth INTEGER NOT NULL,
  hops INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  parent INTEGER,
  relation TEXT,
  found_at INTEGER NOT NULL,
  label TEXT,
  meta TEXT,
  request BLOB,
  history TEXT,
  generation INTEGER NOT NULL,
  state INTEGER NOT NULL CHECK (state BETWEEN 2 AND 6),
  at INTEGER NOT NULL,
  token INTEGER,
  reason TEXT CHECK (reason IS NOT NULL OR state NOT IN (2, 5, 6)),
  detail TEXT,
  requested_at INTEGER,
  status INTEGER,
  elapsed_ms INTEGER,
  segment INTEGER,
  offset INTEGER,
  length INTEGER,
  digest BLOB,
  mime TEXT,
  size INTEGER,
  etag TEXT,
  last_modified TEXT,
  target TEXT,
  copy_of INTEGER
) STRICT;
CREATE INDEX outcome_dead ON outcome (id) WHERE state = 6;
CREATE INDEX outcome_stored ON outcome (id) WHERE state = 2;
CREATE INDEX outcome_refused ON outcome (hid, reason) WHERE state = 5;

-- The first URL done with these bytes: the first half of the body's SHA-256.
CREATE TABLE content (
  digest BLOB PRIMARY KEY,
  id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Refusals of a host by reason: how many are kept as outcomes, how many were only counted.
CREATE TABLE refusal (
  hid INTEGER NOT NULL,
  reason TEXT NOT NULL,
  kept INTEGER NOT NULL CHECK (kept >= 0),
  beyond INTEGER NOT NULL,
  PRIMARY KEY (hid, reason)
) STRICT, WITHOUT ROWID;

CREATE TABLE robots (
  origin TEXT PRIMARY KEY,
  fetched_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  verdict TEXT NOT NULL,
  text TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO serial (name, last) VALUES ('url', 0), ('token', 0);
INSERT INTO tally (name, n) VALUES
  ('queued', 0), ('leased', 0), ('stored', 0), ('done', 0), ('redirected', 0), ('skipped', 0), ('dead', 0),
  ('pages', 0), ('fetches', 0), ('bytes', 0), ('duplicates', 0), ('hosts', 0), ('refused_beyond_cap', 0);
