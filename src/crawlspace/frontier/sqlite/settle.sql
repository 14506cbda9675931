-- name: fences
-- The tokens under which hosts are leased now, the last that were given back, their pace groups, how many URLs their
-- leases still hold, and which they were given, as JSON arrays of [class, id].
SELECT h.hid, h.token, h.released, h.pace_group, h.n_leased, l.urls
FROM host h LEFT JOIN lease l ON l.token = h.token WHERE h.hid IN (?*);

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

-- name: release
-- A visit is over: the host is free and its clock is the visitor's.
UPDATE host SET
  token = NULL, lease_until = NULL, worker = NULL, n_leased = 0, released = ?,
  next_at = ?, delay_ms = ?, crawl_delay_ms = ?, failures = ?, slowed = ?, latency_ms = ?,
  address = coalesce(?, address),
  class = coalesce((SELECT q.class FROM queued q WHERE q.hid = host.hid ORDER BY q.class, q.id LIMIT 1), class)
WHERE hid = ?;

-- name: drop_lease
-- A lease is over.
DELETE FROM lease WHERE token = ?;
