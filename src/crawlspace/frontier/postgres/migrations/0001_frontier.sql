-- The first format. Four kinds of state stay apart: `seen` only grows, `queue` and `delayed` are small and hot,
-- `lease` lives for minutes, `outcome` is written once a visit. Times are milliseconds since 1970 UTC.
-- A URL's key is the 48 bits of its host's number (`hid`) and 80 more (`tail`); `shard` is the first bits of it, and
-- every primary key starts with it, so that tables can be split by shard later without a change of any statement.
-- Columns of fixed width stand first: rows have no gaps. Unlike in SQLite, an index leads a lease to its hosts whatever
-- their shard, since front classes go over the whole crawl.

-- Facts of the crawl, the number of this format, and how many shards there are.
CREATE TABLE meta (
  key text PRIMARY KEY,
  value text NOT NULL
);

-- Numbers that are given out once. A transaction that is undone leaves a gap.
CREATE SEQUENCE url_number;
CREATE SEQUENCE token_number;

-- Totals as transactional deltas: the states, named as in states.py, and figures. A writer changes one slot, so that
-- writers do not wait for each other; a slot alone may be below zero, their sum never is.
CREATE TABLE tally (
  slot smallint PRIMARY KEY,
  queued bigint NOT NULL DEFAULT 0,
  leased bigint NOT NULL DEFAULT 0,
  stored bigint NOT NULL DEFAULT 0,
  done bigint NOT NULL DEFAULT 0,
  redirected bigint NOT NULL DEFAULT 0,
  skipped bigint NOT NULL DEFAULT 0,
  dead bigint NOT NULL DEFAULT 0,
  pages bigint NOT NULL DEFAULT 0,
  fetches bigint NOT NULL DEFAULT 0,
  bytes bigint NOT NULL DEFAULT 0,
  duplicates bigint NOT NULL DEFAULT 0,
  hosts bigint NOT NULL DEFAULT 0,
  refused_beyond_cap bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
INSERT INTO tally (slot) SELECT generate_series(0, 63);

-- Crawl directories that ever took part. Each has an archive of its own.
CREATE TABLE worker (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL UNIQUE
);

CREATE TABLE host (
  hid bigint NOT NULL,
  next_at bigint NOT NULL DEFAULT 0,
  token bigint CHECK ((token IS NULL) = (lease_until IS NULL)),
  lease_until bigint,
  -- The last token whose holder gave it back itself: a repeated release is known by it.
  released bigint,
  -- NULL until its first visit ends: the setting holds.
  delay_ms bigint,
  crawl_delay_ms bigint,
  fetched bigint NOT NULL DEFAULT 0 CHECK (fetched >= 0),
  done bigint NOT NULL DEFAULT 0 CHECK (done >= 0),
  dead bigint NOT NULL DEFAULT 0 CHECK (dead >= 0),
  -- `fetched` as it was when the host was parked: an index on the counter itself would make each change of it dear.
  spent bigint,
  worker integer,
  -- URLs that were queued at least once; those done whose bytes another URL had first.
  discovered bigint NOT NULL DEFAULT 0 CHECK (discovered >= 0),
  duplicates bigint NOT NULL DEFAULT 0 CHECK (duplicates >= 0),
  failures integer NOT NULL DEFAULT 0,
  slowed integer NOT NULL DEFAULT 0,
  -- How long its answers take, smoothed; 0 before the first.
  latency_ms integer NOT NULL DEFAULT 0,
  -- Rows in queue, leased ones included; those of them leased; rows in delayed.
  n_queued integer NOT NULL DEFAULT 0,
  n_leased integer NOT NULL DEFAULT 0 CHECK (n_leased >= 0 AND (n_leased = 0 OR token IS NOT NULL)),
  n_delayed integer NOT NULL DEFAULT 0 CHECK (n_delayed >= 0),
  shard smallint NOT NULL,
  -- Best class with queued URLs.
  class smallint NOT NULL DEFAULT 0 CHECK (class BETWEEN 0 AND 9),
  seed boolean NOT NULL DEFAULT false,
  -- A URL of it was queued at least once; hosts known from refusals alone are not counted and not listed.
  met boolean NOT NULL DEFAULT false,
  -- Has URLs in the queue and is not parked. It flips rarely and the index of due hosts hangs on it: were the index to
  -- hang on the counter, each change of it would write the index too.
  ready boolean GENERATED ALWAYS AS (n_queued > 0 AND parked IS NULL) STORED,
  -- Was given up, or is blocked and still has URLs: what waits is being ended.
  emptying boolean GENERATED ALWAYS AS (
    coalesce(parked = 'condemned' OR (parked = 'blocked' AND n_queued + n_delayed > 0), false)
  ) STORED,
  -- In the order of code points on every server.
  name text COLLATE "C" NOT NULL,
  parked text,
  -- What a person said of the host: `parked` says so too, unless it rests for a reason of its own.
  held text CHECK (held IN ('paused', 'blocked')),
  -- The kind of trap that its URLs look like.
  alarm text,
  -- The class of its dead letters while a host that was given up is being emptied.
  condemned text CHECK (condemned IS NULL OR parked IS NOT NULL),
  PRIMARY KEY (shard, hid),
  CHECK (n_queued >= n_leased)
) WITH (
  fillfactor = 60, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX host_due ON host (class, next_at) WHERE ready AND token IS NULL;
CREATE INDEX host_leased ON host (lease_until) WHERE token IS NOT NULL;
CREATE INDEX host_spent ON host (seed, spent) WHERE parked = 'host_budget';
CREATE INDEX host_emptying ON host (hid) WHERE emptying AND token IS NULL;
CREATE INDEX host_name ON host (name) WHERE met;

-- Every key ever claimed and its number.
CREATE TABLE seen (
  id bigint NOT NULL,
  fp uuid NOT NULL,
  shard smallint NOT NULL,
  PRIMARY KEY (shard, fp)
);

-- URLs that wait for their host. A row stays while it is leased: it is written twice in its life.
-- `settled` is the last lease that sent it back here, `relation` NULL for a hyperlink.
CREATE TABLE queue (
  hid bigint NOT NULL,
  id bigint NOT NULL,
  found_at bigint NOT NULL,
  parent bigint,
  settled bigint,
  depth integer NOT NULL,
  hops integer NOT NULL,
  attempts integer NOT NULL,
  suspect integer NOT NULL,
  generation integer NOT NULL,
  shard smallint NOT NULL,
  class smallint NOT NULL CHECK (class BETWEEN 0 AND 9),
  tail bytea NOT NULL,
  url text NOT NULL,
  relation text,
  label text,
  meta text,
  request bytea,
  history text,
  PRIMARY KEY (shard, hid, class, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- URLs that wait for a time of their own.
CREATE TABLE delayed (
  due_at bigint NOT NULL,
  hid bigint NOT NULL,
  id bigint NOT NULL,
  found_at bigint NOT NULL,
  parent bigint,
  settled bigint,
  depth integer NOT NULL,
  hops integer NOT NULL,
  attempts integer NOT NULL,
  suspect integer NOT NULL,
  generation integer NOT NULL,
  shard smallint NOT NULL,
  class smallint NOT NULL CHECK (class BETWEEN 0 AND 9),
  tail bytea NOT NULL,
  url text NOT NULL,
  relation text,
  label text,
  meta text,
  request bytea,
  history text,
  PRIMARY KEY (shard, hid, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX delayed_due ON delayed (due_at, id);

-- What a live lease was given, settled or not: what a lost one makes suspect.
CREATE TABLE lease (
  token bigint NOT NULL,
  hid bigint NOT NULL,
  shard smallint NOT NULL,
  classes smallint[] NOT NULL,
  ids bigint[] NOT NULL,
  PRIMARY KEY (shard, token)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- Files of the workers' archives, and how far settled captures reach into them.
CREATE TABLE segment (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  worker integer NOT NULL,
  length bigint NOT NULL,
  name text NOT NULL,
  UNIQUE (worker, name)
) WITH (fillfactor = 50);

-- URLs with nothing left to do, and why. `class` is where a revived URL queues again, `token` the lease that settled it,
-- `requested_at` NULL when no request was made. States as in states.py.
CREATE TABLE outcome (
  id bigint NOT NULL,
  hid bigint NOT NULL,
  found_at bigint NOT NULL,
  at bigint NOT NULL,
  parent bigint,
  token bigint,
  requested_at bigint,
  "offset" bigint,
  length bigint,
  size bigint,
  copy_of bigint,
  depth integer NOT NULL,
  hops integer NOT NULL,
  attempts integer NOT NULL,
  generation integer NOT NULL,
  status integer,
  elapsed_ms integer,
  segment integer,
  shard smallint NOT NULL,
  class smallint NOT NULL CHECK (class BETWEEN 0 AND 9),
  state smallint NOT NULL CHECK (state BETWEEN 2 AND 6),
  tail bytea NOT NULL,
  url text NOT NULL,
  relation text,
  label text,
  meta text,
  request bytea,
  history text,
  reason text COLLATE "C" CHECK (reason IS NOT NULL OR state NOT IN (2, 5, 6)),
  detail text,
  digest bytea,
  mime text,
  etag text,
  last_modified text,
  target text,
  PRIMARY KEY (shard, id)
);
CREATE INDEX outcome_dead ON outcome (id) WHERE state = 6;
CREATE INDEX outcome_refused ON outcome (hid, reason, id) WHERE state = 5;
CREATE INDEX outcome_stored ON outcome (id) WHERE state = 2;

-- The first URL done with these bytes: the first half of the body's SHA-256, and a shard of its own first bits.
CREATE TABLE content (
  id bigint NOT NULL,
  digest uuid NOT NULL,
  shard smallint NOT NULL,
  PRIMARY KEY (shard, digest)
);

-- Refusals of a host by reason: how many are kept as outcomes, how many were only counted.
CREATE TABLE refusal (
  hid bigint NOT NULL,
  kept bigint NOT NULL CHECK (kept >= 0),
  beyond bigint NOT NULL,
  shard smallint NOT NULL,
  reason text NOT NULL,
  PRIMARY KEY (shard, hid, reason)
);

-- Commands in the order in which they are carried out. `progress` is how far one has come or, when `done_at` is set, its
-- answer; both are JSON.
CREATE TABLE control (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  asked_at bigint NOT NULL,
  done_at bigint,
  -- The worker that carries it out, and until when it has the word for that.
  taken_until bigint NOT NULL DEFAULT 0,
  taken_by integer NOT NULL DEFAULT 0,
  command text NOT NULL,
  progress text NOT NULL DEFAULT ''
);
CREATE INDEX control_open ON control (id) WHERE done_at IS NULL;

CREATE TABLE robots (
  fetched_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  origin text PRIMARY KEY,
  verdict text NOT NULL,
  text text NOT NULL,
  detail text NOT NULL
);
