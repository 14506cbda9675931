-- Content identity: fingerprints of what was read, and what they say of a URL. Numbers of 64 bits have a sign. What is
-- looked up by a text or by a page's number alone has no shard in its key: these tables are spread by those numbers.

-- Pages that are done and have a text; `shard` is where their outcome lies. `text` is the first half of the SHA-256 of
-- the page's text, `follow` the first 64 bits of that of text and links, `near` its SimHash, `kin` equal for those that
-- may be near-duplicates; `verdict` is what the page is to those before it (0 first, 1 exact copy, 2 near copy, 3 too
-- short to say), `copy_of` of which page, `grp` the first page of its group, `stopped_by` on whose account its links were
-- not followed, `whole` whether all its links were claimed.
CREATE TABLE page (
  id bigint PRIMARY KEY,
  follow bigint NOT NULL,
  near bigint,
  kin bigint,
  copy_of bigint,
  grp bigint,
  stopped_by bigint,
  text uuid NOT NULL,
  length integer NOT NULL,
  shard smallint NOT NULL,
  verdict smallint NOT NULL CHECK (verdict BETWEEN 0 AND 3),
  whole boolean NOT NULL,
  language text NOT NULL,
  sign text
) WITH (fillfactor = 90);
CREATE INDEX page_group ON page (grp, id) WHERE grp IS NOT NULL;
CREATE INDEX page_sign ON page (id) WHERE sign IS NOT NULL;

-- Who said a text first, by 64 bits of the text and its language.
CREATE TABLE said (
  key bigint PRIMARY KEY,
  id bigint NOT NULL
);

-- The index of near-duplicates: fingerprints by the value of one of their bands, packed (`frontier.near`).
CREATE TABLE near_row (
  key bigint PRIMARY KEY,
  members bytea NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- Pages by host and the shape of their addresses; `new` said more than their own address. `dry` counts
-- pages in a row that said nothing new, `run` those of them that led only to more of the same, `last` is the last of them, `latest` what the last different pages said, 4 bytes each.
CREATE TABLE shape (
  hid bigint NOT NULL,
  last bigint,
  pages integer NOT NULL,
  new integer NOT NULL,
  exact integer NOT NULL,
  near integer NOT NULL,
  dry integer NOT NULL,
  run integer NOT NULL,
  shard smallint NOT NULL,
  shape text COLLATE "C" NOT NULL,
  latest bytea NOT NULL,
  PRIMARY KEY (shard, hid, shape)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX shape_run ON shape (shard, hid) WHERE run > 0;
CREATE INDEX shape_longest ON shape (run) WHERE run > 0;

-- What hosts brought: pages, exact and near copies among them; shapes that are kept; pairs of copies in a row whose links
-- were followed and brought nothing; and the answer to a path that nobody links to, if it was asked for.
CREATE TABLE host_content (
  hid bigint NOT NULL,
  probed_at bigint,
  probe_near bigint,
  pages integer NOT NULL DEFAULT 0,
  exact integer NOT NULL DEFAULT 0,
  near integer NOT NULL DEFAULT 0,
  shapes integer NOT NULL DEFAULT 0,
  pairs integer NOT NULL DEFAULT 0,
  probe_status integer,
  probe_length integer,
  shard smallint NOT NULL,
  probe_digest bytea,
  PRIMARY KEY (shard, hid)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02);

-- What hosts brought in each hour. `copies` had bytes that another URL had first.
CREATE TABLE hour_content (
  hour bigint NOT NULL,
  hid bigint NOT NULL,
  pages integer NOT NULL,
  copies integer NOT NULL,
  exact integer NOT NULL,
  near integer NOT NULL,
  shard smallint NOT NULL,
  PRIMARY KEY (shard, hid, hour)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02);

-- Totals: exact and near copies, and pages whose links were not followed. A writer changes one slot.
CREATE TABLE content_total (
  slot smallint PRIMARY KEY,
  exact bigint NOT NULL DEFAULT 0,
  near bigint NOT NULL DEFAULT 0,
  stopped bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
INSERT INTO content_total (slot) SELECT generate_series(0, 63);
