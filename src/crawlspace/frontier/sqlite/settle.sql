-- name: tokens
-- The token under which a host is leased now, the last that was given back, and its pace group.
SELECT token, released, pace_group FROM host WHERE hid = ?;

-- name: first_with
-- These bytes belong to this URL from now on, unless another had them first.
INSERT INTO content (digest, id) VALUES (?, ?) ON CONFLICT DO NOTHING;

-- name: who_had
-- The URL that had these bytes first.
SELECT id FROM content WHERE digest = ?;

-- name: refuse
-- One refusal more that is kept.
INSERT INTO refusal (hid, reason, kept, beyond) VALUES (?, ?, 1, 0)
ON CONFLICT (hid, reason) DO UPDATE SET kept = kept + 1;

-- name: segment
-- The number of an archive file.
SELECT id FROM segment WHERE name = ?;

-- name: add_segment
-- An archive file that is named for the first time.
INSERT INTO segment (name, length) VALUES (?, 0) RETURNING id;

-- name: reach
-- Settled captures reach this far into an archive file.
UPDATE segment SET length = max(length, ?) WHERE id = ?;

-- name: unspent
-- How many URLs a host's lease still holds.
SELECT n_leased FROM host WHERE hid = ?;

-- name: release
-- A visit is over: the host is free and its clock is the visitor's.
UPDATE host SET
  token = NULL, lease_until = NULL, worker = NULL, n_leased = 0, released = :token,
  next_at = :next_at, delay_ms = :delay_ms, crawl_delay_ms = :crawl_delay_ms, failures = :failures, slowed = :slowed,
  latency_ms = :latency_ms, address = coalesce(:address, address),
  class = coalesce((SELECT q.class FROM queue q WHERE q.hid = host.hid ORDER BY q.class, q.id LIMIT 1), class)
WHERE hid = :hid;

-- name: drop_lease
-- A lease is over.
DELETE FROM lease WHERE token = ?;
