-- name: queued
-- URLs of the queue in its order, from the first behind a place.
SELECT
  q.hid, q.class, q.id, q.tail, q.url, q.depth, q.hops, q.relation, NULL, NULL, 0, h.name
FROM queue q JOIN host h ON h.hid = q.hid
WHERE (q.hid, q.class, q.id) > (?, ?, ?) ORDER BY q.hid, q.class, q.id LIMIT ?;

-- name: delayed
-- URLs that wait for a time, by number, from the first above one.
SELECT
  d.hid, d.class, d.id, d.tail, d.url, d.depth, d.hops, d.relation, NULL, NULL, 0, h.name
FROM delayed d JOIN host h ON h.hid = d.hid WHERE d.id > ? ORDER BY d.id LIMIT ?;

-- name: refused
-- Refused URLs by host, reason and number, from the first behind a place.
SELECT
  o.hid, o.class, o.id, o.tail, o.url, o.depth, o.hops, o.relation, o.reason, o.status, o.at, h.name
FROM outcome o JOIN host h ON h.hid = o.hid
WHERE o.state = 5 AND (o.hid, o.reason, o.id) > (?, ?, ?) ORDER BY o.hid, o.reason, o.id LIMIT ?;

-- name: dead
-- Dead letters by number, from the first above one.
SELECT
  o.hid, o.class, o.id, o.tail, o.url, o.depth, o.hops, o.relation, o.reason, o.status, o.at, h.name
FROM outcome o JOIN host h ON h.hid = o.hid WHERE o.state = 6 AND o.id > ? ORDER BY o.id LIMIT ?;

-- name: host
-- What a ruling must know of a URL's host: a seed's, URLs that wait, lease, whether it takes none, and whether it ever did.
SELECT seed, n_queued + n_delayed, token, held = 'blocked' OR parked = 'address_hosts', met FROM host WHERE hid = ?;

-- name: refused_more
-- Kept refusals of a host and reason come or go.
INSERT INTO refusal (hid, reason, kept, beyond) VALUES (:hid, :reason, max(0, :n), 0)
ON CONFLICT (hid, reason) DO UPDATE SET kept = kept + :n;

-- name: drop
-- A dead letter becomes a refusal.
UPDATE outcome SET state = 5, reason = ?, at = ? WHERE id = ? AND state = 6;

-- name: reclass
-- The class of a host that has lost or won URLs.
UPDATE host SET
  class = coalesce((SELECT q.class FROM queued q WHERE q.hid = host.hid ORDER BY q.class, q.id LIMIT 1), class)
WHERE hid = ?;
