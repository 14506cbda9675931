-- Content identity: fingerprints of what was read, and what they say of a URL. Numbers of 64 bits have a sign.

-- Pages that are done and have a text. `text` is the first half of the SHA-256 of the page's text, `follow` the first 64
-- bits of that of text and links, `near` its SimHash, `kin` equal for those that may be near-duplicates; `verdict` is
-- what the page is to those before it (0 first, 1 exact copy, 2 near copy, 3 too short to say), `copy_of` of which page,
-- `grp` the first page of its group, `stopped_by` on whose account its links were not followed, `whole` whether all its
-- links were claimed.
CREATE TABLE page (
  id INTEGER PRIMARY KEY,
  text BLOB NOT NULL,
  follow INTEGER NOT NULL,
  near INTEGER,
  kin INTEGER,
  length INTEGER NOT NULL,
  language TEXT NOT NULL,
  verdict INTEGER NOT NULL CHECK (verdict BETWEEN 0 AND 3),
  copy_of INTEGER,
  grp INTEGER,
  stopped_by INTEGER,
  sign TEXT,
  whole INTEGER NOT NULL CHECK (whole IN (0, 1))
) STRICT;
CREATE INDEX page_group ON page (grp, id) WHERE grp IS NOT NULL;
CREATE INDEX page_sign ON page (id) WHERE sign IS NOT NULL;

-- Who said a text first, by 64 bits of the text and its language.
CREATE TABLE said (
  key INTEGER PRIMARY KEY,
  id INTEGER NOT NULL
) STRICT;

-- The index of near-duplicates: fingerprints by the value of one of their bands, packed (`frontier.near`).
CREATE TABLE near_row (
  key INTEGER PRIMARY KEY,
  members BLOB NOT NULL
) STRICT;

-- Pages by host and the shape of their addresses; `new` said more than their own address. `dry` counts
-- pages in a row that said nothing new, `run` those of them that led only to more of the same, `last` is the last of them, `latest` what the last different pages said, 4 bytes each.
CREATE TABLE shape (
  hid INTEGER NOT NULL,
  shape TEXT NOT NULL,
  pages INTEGER NOT NULL,
  new INTEGER NOT NULL,
  exact INTEGER NOT NULL,
  near INTEGER NOT NULL,
  dry INTEGER NOT NULL,
  run INTEGER NOT NULL,
  last INTEGER,
  latest BLOB NOT NULL,
  PRIMARY KEY (hid, shape)
) STRICT, WITHOUT ROWID;
CREATE INDEX shape_run ON shape (hid, run) WHERE run > 0;
CREATE INDEX shape_longest ON shape (run) WHERE run > 0;

-- What hosts brought: pages, exact and near copies among them; shapes that are kept; pairs of copies in a row whose links
-- were followed and brought nothing; and the answer to a path that nobody links to, if it was asked for.
CREATE TABLE host_content (
  hid INTEGER PRIMARY KEY,
  pages INTEGER NOT NULL DEFAULT 0,
  exact INTEGER NOT NULL DEFAULT 0,
  near INTEGER NOT NULL DEFAULT 0,
  shapes INTEGER NOT NULL DEFAULT 0,
  pairs INTEGER NOT NULL DEFAULT 0,
  probed_at INTEGER,
  probe_status INTEGER,
  probe_digest BLOB,
  probe_near INTEGER,
  probe_length INTEGER
) STRICT;

-- What hosts brought in each hour. `copies` had bytes that another URL had first.
CREATE TABLE hour_content (
  hour INTEGER NOT NULL,
  hid INTEGER NOT NULL,
  pages INTEGER NOT NULL,
  copies INTEGER NOT NULL,
  exact INTEGER NOT NULL,
  near INTEGER NOT NULL,
  PRIMARY KEY (hour, hid)
) STRICT, WITHOUT ROWID;

-- Totals: exact and near copies, and pages whose links were not followed.
CREATE TABLE content_total (
  name TEXT PRIMARY KEY,
  n INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO content_total (name, n) VALUES ('exact', 0), ('near', 0), ('stopped', 0);
