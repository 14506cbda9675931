-- What a person asks of a crawl while it runs, and what hosts tell of themselves beyond their pace.

-- Commands in the order in which they are carried out. `progress` is how far one has come or, when `done_at` is set, its
-- answer; both are JSON.
CREATE TABLE control (
  id INTEGER PRIMARY KEY,
  asked_at INTEGER NOT NULL,
  command TEXT NOT NULL,
  progress TEXT NOT NULL DEFAULT '',
  done_at INTEGER
) STRICT;
CREATE INDEX control_open ON control (id) WHERE done_at IS NULL;

-- What a person said of the host: `parked` says so too, unless it rests for a reason of its own.
ALTER TABLE host ADD COLUMN held TEXT CHECK (held IN ('paused', 'blocked'));
-- How long its answers take, smoothed; 0 before the first.
ALTER TABLE host ADD COLUMN latency_ms INTEGER NOT NULL DEFAULT 0;
-- URLs that were queued at least once; those done whose bytes another URL had first.
ALTER TABLE host ADD COLUMN discovered INTEGER NOT NULL DEFAULT 0 CHECK (discovered >= 0);
ALTER TABLE host ADD COLUMN duplicates INTEGER NOT NULL DEFAULT 0 CHECK (duplicates >= 0);
-- The kind of trap that its URLs look like.
ALTER TABLE host ADD COLUMN alarm TEXT;
CREATE INDEX host_blocked ON host (hid) WHERE parked = 'blocked' AND n_queued + n_delayed > 0 AND token IS NULL;

-- Of the hosts there are: what is not refused was queued once.
UPDATE host SET
  discovered = n_queued + n_delayed + ended.n,
  duplicates = ended.copies
FROM (SELECT hid, sum(state <> 5) AS n, count(copy_of) AS copies FROM outcome GROUP BY hid) AS ended
WHERE ended.hid = host.hid;
UPDATE host SET discovered = n_queued + n_delayed WHERE discovered = 0;
