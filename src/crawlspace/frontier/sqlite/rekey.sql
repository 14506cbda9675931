-- Re-keying: every URL is looked at once (the plan), then moved or merged group by group, then what pointed to merged
-- URLs and the hosts that are left over are put right. Tables `rekey_plan` and `merged` are made by the first run.

-- name: make_plan
-- Every URL by its new key, who stays first in each group. `hid` and `tail` are its key of before.
CREATE TABLE IF NOT EXISTS rekey_plan (
  fp BLOB NOT NULL,
  rank INTEGER NOT NULL,
  id INTEGER NOT NULL,
  place INTEGER NOT NULL,
  hid INTEGER NOT NULL,
  tail BLOB NOT NULL,
  PRIMARY KEY (fp, rank, id)
) STRICT, WITHOUT ROWID;

-- name: make_merged
-- URLs that became one with another under new rules, as they were: `winner` is who stayed, `hid` where its requests count.
CREATE TABLE IF NOT EXISTS merged (
  id INTEGER PRIMARY KEY,
  winner INTEGER NOT NULL,
  rules TEXT NOT NULL,
  hid INTEGER NOT NULL,
  class INTEGER NOT NULL,
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
  due_at INTEGER,
  suspect INTEGER NOT NULL,
  state INTEGER NOT NULL CHECK (state IN (0, 2, 3, 4, 5, 6)),
  at INTEGER,
  token INTEGER,
  reason TEXT,
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
  copy_of INTEGER,
  route TEXT,
  next_visit INTEGER,
  interval_ms INTEGER,
  changed INTEGER,
  content BLOB
) STRICT;

-- name: has_column
-- Whether `merged` has a column.
SELECT count(*) FROM pragma_table_info('merged') WHERE name = ?;

-- name: add_route
-- Tables made before routes and rounds of visits lack these five.
ALTER TABLE merged ADD COLUMN route TEXT;

-- name: add_next_visit
-- The next visit of each.
ALTER TABLE merged ADD COLUMN next_visit INTEGER;

-- name: add_interval_ms
-- How long its pages were left alone.
ALTER TABLE merged ADD COLUMN interval_ms INTEGER;

-- name: add_changed
-- Whether its last visit found something else.
ALTER TABLE merged ADD COLUMN changed INTEGER;

-- name: add_content
-- By what that is told.
ALTER TABLE merged ADD COLUMN content BLOB;

-- name: index_merged
-- Finds what was merged into a URL.
CREATE INDEX IF NOT EXISTS merged_winner ON merged (winner);

-- name: has_merged
-- Whether this store was ever re-keyed.
SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'merged';

-- name: drop_visits
-- Earlier visits of URLs that are one with another now.
DELETE FROM visit WHERE id IN (SELECT id FROM merged);

-- name: point_visits
-- Earlier visits name who stayed as their first copy.
UPDATE visit SET copy_of = (SELECT m.winner FROM merged m WHERE m.id = visit.copy_of)
WHERE copy_of IN (SELECT id FROM merged);

-- name: drop_plan
-- The plan was carried out.
DROP TABLE IF EXISTS rekey_plan;

-- name: write_fact
-- Set one fact.
REPLACE INTO meta (key, value) VALUES (?, ?);

-- name: count_urls
-- How many URLs there are, by the totals.
SELECT sum(n) FROM tally WHERE name IN ('queued', 'leased', 'stored', 'done', 'redirected', 'skipped', 'dead');

-- name: read_outcome
-- The next URLs with an outcome.
SELECT id, hid, tail, url, request, state, target, id FROM outcome WHERE id > ? ORDER BY id LIMIT ?;

-- name: read_queue
-- The next queued URLs.
SELECT id, hid, tail, url, request, 0, NULL, hid, class, id FROM queue WHERE (hid, class, id) > (?, ?, ?)
ORDER BY hid, class, id LIMIT ?;

-- name: read_delayed
-- The next delayed URLs.
SELECT id, hid, tail, url, request, 0, NULL, due_at, id FROM delayed WHERE (due_at, id) > (?, ?)
ORDER BY due_at, id LIMIT ?;

-- name: read_merged
-- The next URLs that were merged before: they may come apart again.
SELECT id, hid, x'', url, request, state, target, id FROM merged WHERE id > ? ORDER BY id LIMIT ?;

-- name: plan
-- A URL's place under the new rules.
INSERT INTO rekey_plan (fp, rank, id, place, hid, tail) VALUES (?, ?, ?, ?, ?, ?);

-- name: planned
-- The next URLs of the plan, group after group.
SELECT fp, rank, id, place, hid, tail FROM rekey_plan WHERE (fp, rank, id) > (?, ?, ?) ORDER BY fp, rank, id LIMIT ?;

-- name: plans
-- Whether the plan has this key.
SELECT 1 FROM rekey_plan WHERE fp = ? LIMIT 1;

-- name: url_of
-- Address and request of a URL, wherever it is.
SELECT url, request FROM outcome WHERE id = :id
UNION ALL SELECT url, request FROM delayed WHERE id = :id
UNION ALL SELECT url, request FROM queue WHERE hid = :hid AND class IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9) AND id = :id
UNION ALL SELECT url, request FROM merged WHERE id = :id;

-- name: url_of_live
-- The same of a URL that is not merged; a store that was never re-keyed has no others.
SELECT url, request FROM outcome WHERE id = :id
UNION ALL SELECT url, request FROM delayed WHERE id = :id
UNION ALL SELECT url, request FROM queue WHERE hid = :hid AND class IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9) AND id = :id;

-- name: forget_key
-- A URL gives up its key, unless another URL has it by now.
DELETE FROM seen WHERE fp = ? AND id = ?;

-- name: take_key
-- A URL takes its new key, also from one that will give it up later.
REPLACE INTO seen (fp, id) VALUES (?, ?);

-- name: outcome_facts
-- What the counters must know of an outcome.
SELECT state, reason, token, attempts, status, copy_of IS NOT NULL FROM outcome WHERE id = ?;

-- name: move_outcome
-- An outcome under its new key.
UPDATE outcome SET hid = ?, tail = ? WHERE id = ?;

-- name: bury_outcome
-- Keep an outcome that gives way.
INSERT INTO merged (
  id, winner, rules, hid, class, url, depth, hops, attempts, parent, relation, found_at, label, meta, request, history,
  generation, suspect, state, at, token, reason, detail, requested_at, status, elapsed_ms, segment, offset, length,
  digest, mime, size, etag, last_modified, target, copy_of, route, next_visit,
  interval_ms, changed, content
) SELECT
  id, :winner, :rules, :hid, class, url, depth, hops, attempts, parent, relation, found_at, label, meta, request, history,
  generation, 0, state, at, token, reason, detail, requested_at, status, elapsed_ms, segment, offset, length,
  digest, mime, size, etag, last_modified, target, copy_of, route, next_visit,
  interval_ms, changed, content
FROM outcome WHERE id = :id;

-- name: bury_waiting
-- Keep a waiting URL that gives way.
INSERT INTO merged (
  id, winner, rules, hid, class, url, depth, hops, attempts, parent, relation, found_at, label, meta, request, history,
  generation, due_at, suspect, route, state
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0);

-- name: forget_outcome
-- An outcome is gone from its table.
DELETE FROM outcome WHERE id = ?;

-- name: redirect_merged
-- A URL that was merged before belongs to this one now.
UPDATE merged SET winner = ?, hid = ? WHERE id = ?;

-- name: merged_facts
-- What a URL that comes back was, as the counters ask, then its due time and who stood for it.
SELECT state, reason, token, attempts, status, copy_of IS NOT NULL, hid, due_at, winner FROM merged WHERE id = ?;

-- name: restore_outcome
-- An outcome comes back.
INSERT INTO outcome (
  id, hid, class, tail, url, depth, hops, attempts, parent, relation, found_at, label, meta, request, history, generation,
  state, at, token, reason, detail, requested_at, status, elapsed_ms, segment, offset, length, digest, mime, size, etag,
  last_modified, target, copy_of, route, next_visit,
  interval_ms, changed, content
) SELECT
  id, :hid, class, :tail, url, depth, hops, attempts, parent, relation, found_at, label, meta, request, history, generation,
  state, at, token, reason, detail, requested_at, status, elapsed_ms, segment, offset, length, digest, mime, size, etag,
  last_modified, target, copy_of, route, next_visit,
  interval_ms, changed, content
FROM merged WHERE id = :id;

-- name: restore_waiting
-- A waiting URL that comes back, as a row of the queue.
SELECT
  :hid, class, id, :tail, url, depth, hops, attempts, parent, relation, found_at, suspect, label, meta, request, history,
  generation, NULL, route
FROM merged WHERE id = :id;

-- name: forget_merged
-- A URL is merged no longer.
DELETE FROM merged WHERE id = ?;

-- name: regain_content
-- Bytes that only this URL had belong to it again.
UPDATE content SET id = :id
WHERE digest = (SELECT substr(digest, 1, 16) FROM outcome WHERE id = :id) AND id = :winner
  AND digest IS NOT (SELECT substr(digest, 1, 16) FROM outcome WHERE id = :winner);

-- name: host
-- Whether a host is there, and whether it was ever met.
SELECT met FROM host WHERE hid = ?;

-- name: host_name
-- A host's name.
SELECT name FROM host WHERE hid = ?;

-- name: add_host
-- A host that is named for the first time.
INSERT INTO host (hid, name, seed) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- name: slow_host
-- A host that gets URLs of another is asked no faster and no sooner than that one, and held where that one is.
UPDATE host SET
  next_at = max(host.next_at, o.next_at),
  delay_ms = coalesce(max(host.delay_ms, o.delay_ms), host.delay_ms, o.delay_ms),
  crawl_delay_ms = coalesce(max(host.crawl_delay_ms, o.crawl_delay_ms), host.crawl_delay_ms, o.crawl_delay_ms),
  failures = max(host.failures, o.failures),
  slowed = max(host.slowed, o.slowed),
  latency_ms = max(host.latency_ms, o.latency_ms),
  alarm = coalesce(host.alarm, o.alarm),
  held = CASE WHEN host.held = 'blocked' OR o.held = 'blocked' THEN 'blocked' ELSE coalesce(host.held, o.held) END
FROM host o WHERE o.hid = :old AND host.hid = :new;

-- name: hold_host
-- A host that is held rests, unless it rests for a reason of its own.
UPDATE host SET
  parked = CASE WHEN parked IN ('host_budget', 'condemned') THEN parked ELSE held END,
  ready = 0
WHERE hid = :new AND held IS NOT NULL;

-- name: reclass_host
-- The class of a host that has lost or won URLs.
UPDATE host SET
  class = coalesce((SELECT q.class FROM queued q WHERE q.hid = host.hid ORDER BY q.class, q.id LIMIT 1), class)
WHERE hid = ?;

-- name: move_refusals
-- Kept refusals of a host and reason come or go.
INSERT INTO refusal (hid, reason, kept, beyond) VALUES (:hid, :reason, max(:n, 0), 0)
ON CONFLICT (hid, reason) DO UPDATE SET kept = kept + :n;

-- name: next_rows_end
-- The number at which the next rows with an outcome end.
SELECT max(id) FROM (SELECT id FROM outcome WHERE id > ? ORDER BY id LIMIT ?);

-- name: point_outcome
-- Outcomes name the URL that stayed as their parent and first copy.
UPDATE outcome SET
  parent = coalesce((SELECT m.winner FROM merged m WHERE m.id = outcome.parent), parent),
  copy_of = coalesce((SELECT m.winner FROM merged m WHERE m.id = outcome.copy_of), copy_of)
WHERE id > ? AND id <= ?
  AND (EXISTS (SELECT 1 FROM merged m WHERE m.id = outcome.parent)
    OR EXISTS (SELECT 1 FROM merged m WHERE m.id = outcome.copy_of));

-- name: no_own_parent
-- What was found on another spelling of itself has no parent.
UPDATE outcome SET parent = NULL WHERE id > ? AND id <= ? AND parent = id;

-- name: no_own_copy
-- No page is a copy of itself.
UPDATE outcome SET copy_of = NULL WHERE id > ? AND id <= ? AND copy_of = id RETURNING hid;

-- name: queue_end
-- The row at which the next rows of the queue end.
SELECT hid, class, id FROM (
  SELECT hid, class, id FROM queued WHERE (hid, class, id) > (?, ?, ?) ORDER BY hid, class, id LIMIT ?
) ORDER BY hid DESC, class DESC, id DESC LIMIT 1;

-- name: point_queue
-- Queued URLs name the URL that stayed as their parent.
UPDATE queued SET parent = (SELECT nullif(m.winner, queued.id) FROM merged m WHERE m.id = queued.parent)
WHERE (hid, class, id) > (?, ?, ?) AND (hid, class, id) <= (?, ?, ?)
  AND EXISTS (SELECT 1 FROM merged m WHERE m.id = queued.parent);

-- name: delayed_end
-- The row at which the next delayed rows end.
SELECT due_at, id FROM (
  SELECT due_at, id FROM delayed WHERE (due_at, id) > (?, ?) ORDER BY due_at, id LIMIT ?
) ORDER BY due_at DESC, id DESC LIMIT 1;

-- name: point_delayed
-- Delayed URLs name the URL that stayed as their parent.
UPDATE delayed SET parent = (SELECT nullif(m.winner, delayed.id) FROM merged m WHERE m.id = delayed.parent)
WHERE (due_at, id) > (?, ?) AND (due_at, id) <= (?, ?)
  AND EXISTS (SELECT 1 FROM merged m WHERE m.id = delayed.parent);

-- name: content_end
-- The digest at which the next rows end.
SELECT max(digest) FROM (SELECT digest FROM content WHERE digest > ? ORDER BY digest LIMIT ?);

-- name: point_content
-- Bytes belong to the URL that stayed.
UPDATE content SET id = (SELECT m.winner FROM merged m WHERE m.id = content.id)
WHERE digest > ? AND digest <= ? AND EXISTS (SELECT 1 FROM merged m WHERE m.id = content.id);

-- name: hosts_after
-- The next hosts by number.
SELECT hid, name, seed, met, fetched, discovered FROM host WHERE hid > ? ORDER BY hid LIMIT ?;

-- name: forget_crowds
-- How many hosts domains and addresses have is counted anew.
DELETE FROM crowd;

-- name: counted_hosts
-- The next hosts by number: whether each counts for its domain, whether it is only known since its domain had no room,
-- and the address for which it counts.
SELECT
  h.hid, h.name, h.met,
  NOT h.met AND EXISTS (SELECT 1 FROM refusal r WHERE r.hid = h.hid AND r.reason = ? AND r.kept > 0),
  CASE WHEN h.parked IS 'address_hosts' THEN NULL ELSE h.address END
FROM host h WHERE h.hid > ? ORDER BY h.hid LIMIT ?;

-- name: inherit_refusals
-- Refusals of a host that were only counted go with its name.
INSERT INTO refusal (hid, reason, kept, beyond)
SELECT :new, reason, 0, beyond FROM refusal WHERE hid = :old AND beyond > 0
ON CONFLICT (hid, reason) DO UPDATE SET beyond = beyond + excluded.beyond;

-- name: drop_refusals
-- The refusals of a host that is gone.
DELETE FROM refusal WHERE hid = ?;

-- name: drop_empty_refusals
-- Reasons of a host for which nothing is refused.
DELETE FROM refusal WHERE hid = ? AND kept = 0 AND beyond = 0;

-- name: has_refusals
-- Whether a host has refusals, kept or counted.
SELECT 1 FROM refusal WHERE hid = ? LIMIT 1;

-- name: has_urls
-- Whether a URL with a key in this range is known.
SELECT 1 FROM seen WHERE fp >= ? AND fp < ? LIMIT 1;

-- name: drop_host
-- A host that is gone.
DELETE FROM host WHERE hid = ?;

-- name: condemned
-- Whether a host that was given up still has URLs to bury.
SELECT 1 FROM host WHERE parked = 'condemned' LIMIT 1;

-- name: followed
-- Whether a URL that is settled was found behind a link.
SELECT 1 FROM outcome WHERE depth > 0 LIMIT 1;

-- name: follows
-- Whether a URL that waits was found behind a link.
SELECT 1 FROM queued WHERE depth > 0 LIMIT 1;

-- name: sources
-- The next URLs whose capture or redirect led to others.
SELECT
  o.id, o.hid, o.tail, o.url, o.class, o.depth, o.hops, o.label, o.meta, o.state, o.target, s.name, o.offset, o.length
FROM outcome o LEFT JOIN segment s ON s.id = o.segment
WHERE o.id > ? AND o.state IN (3, 4) ORDER BY o.id LIMIT ?;

-- name: merged_sources
-- The same of URLs that were merged, in the name of the URL that stayed.
SELECT
  m.id, m.winner, m.url, m.class, m.depth, m.hops, m.label, m.meta, m.state, m.target, s.name, m.offset, m.length
FROM merged m LEFT JOIN segment s ON s.id = m.segment
WHERE m.id > ? AND m.state IN (3, 4) ORDER BY m.id LIMIT ?;

-- name: merged_into
-- The URLs that were merged into one, oldest first.
SELECT m.id, m.url, m.state, m.reason, m.at, m.status, s.name, m.offset, m.length, m.rules
FROM merged m LEFT JOIN segment s ON s.id = m.segment WHERE m.winner = ? ORDER BY m.id LIMIT ?;
