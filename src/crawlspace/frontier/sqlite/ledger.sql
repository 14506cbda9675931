-- name: tally
-- All totals.
SELECT name, n FROM tally;

-- name: facts
-- What the crawl knows of itself.
SELECT key, value FROM meta WHERE key <> 'edition' AND key NOT GLOB 'crew *';

-- name: write_fact
-- Set one fact.
REPLACE INTO meta (key, value) VALUES (?, ?);

-- name: edition
-- How often something changed that all who work on the crawl must hear of.
SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'edition';

-- name: new_edition
-- Once more.
UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'edition';

-- name: revise_fact
-- Set a fact that is what it was.
UPDATE meta SET value = ? WHERE key = ? AND value = ?;

-- name: first_fact
-- Set a fact that is not there.
INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING;

-- name: held
-- Names of leased hosts that a person holds.
SELECT name FROM host WHERE held IS NOT NULL AND token IS NOT NULL;

-- name: robots
-- The stored answer of one origin.
SELECT origin, fetched_at, expires_at, verdict, text, detail FROM robots WHERE origin = ?;

-- name: write_robots
-- Set the answer of one origin.
REPLACE INTO robots (origin, fetched_at, expires_at, verdict, text, detail) VALUES (?, ?, ?, ?, ?, ?);

-- name: number
-- The number of a key.
SELECT id FROM seen WHERE fp = ?;

-- name: host
-- A host's name, token and time, for the story of one of its URLs.
SELECT name, token, next_at FROM host WHERE hid = ?;

-- name: outcome
-- An outcome, then the names behind its numbers: parent, first copy, archive file.
SELECT
  o.hid, o.class, o.id, o.tail, o.url, o.depth, o.hops, o.attempts, o.parent, o.relation, o.found_at, 0, o.label, o.meta,
  o.request, o.history, o.generation, NULL, o.route,
  o.state, o.at, o.token, o.reason, o.detail, o.requested_at, o.status, o.elapsed_ms, o.segment, o.offset, o.length,
  o.digest, o.mime, o.size, o.etag, o.last_modified, o.target, o.copy_of, o.next_visit, o.interval_ms, o.changed,
  o.content,
  (SELECT p.url FROM outcome p WHERE p.id = o.parent),
  (SELECT c.url FROM outcome c WHERE c.id = o.copy_of),
  (SELECT s.name FROM segment s WHERE s.id = o.segment)
FROM outcome o WHERE o.id = ?;

-- name: url_of
-- The address of a URL with an outcome.
SELECT url FROM outcome WHERE id = ?;

-- name: refused
-- Numbers of a host's URLs that were skipped for a reason.
SELECT id FROM outcome WHERE state = 5 AND hid = ? AND reason = ? AND id > ? ORDER BY id LIMIT ?;

-- name: stored
-- Numbers of URLs that were stored but not processed.
SELECT id FROM outcome WHERE state = 2 AND id > ? ORDER BY id LIMIT ?;

-- name: dead_letters
-- Dead letters in order of their numbers.
SELECT
  o.id, o.url, h.name, o.reason, o.status, o.detail, o.attempts, o.depth,
  (SELECT p.url FROM outcome p WHERE p.id = o.parent), o.found_at, o.at, o.history
FROM outcome o JOIN host h ON h.hid = o.hid
WHERE o.state = 6 AND o.id > ? ORDER BY o.id LIMIT ?;

-- name: hosts
-- Hosts by name.
SELECT
  name, n_queued - n_leased + n_delayed, n_leased, fetched, done, dead, parked,
  discovered, duplicates, alarm, address, pace_group,
  coalesce((SELECT g.next_at FROM pace_group g WHERE g.name = host.pace_group), 0),
  coalesce((SELECT c.exact FROM host_content c WHERE c.hid = host.hid), 0),
  coalesce((SELECT c.near FROM host_content c WHERE c.hid = host.hid), 0),
  coalesce((SELECT c.links FROM host_content c WHERE c.hid = host.hid), 0),
  coalesce((SELECT c.known FROM host_content c WHERE c.hid = host.hid), 0),
  next_at, delay_ms, crawl_delay_ms, failures, slowed, latency_ms
FROM host WHERE met AND name > ? ORDER BY name LIMIT ?;

-- name: segments
-- How far settled captures reach into the archive's files.
SELECT name, length FROM segment;
