-- name: condemn
-- A host is given up.
UPDATE host SET parked = 'condemned', condemned = ?, ready = 0 WHERE hid = ?;

-- name: pardon
-- Nothing of it is left to bury: new URLs are tried again, unless a person holds it.
UPDATE host SET parked = held, condemned = NULL, ready = n_queued > 0 AND held IS NULL WHERE hid = ?;

-- name: next
-- A host that still has URLs to bury.
SELECT hid, condemned FROM host WHERE parked = 'condemned' LIMIT 1;

-- name: next_blocked
-- A free host that a person blocked and that still has URLs.
SELECT hid FROM host WHERE parked = 'blocked' AND n_queued + n_delayed > 0 AND token IS NULL LIMIT 1;

-- name: refused
-- So many refusals more are kept.
INSERT INTO refusal (hid, reason, kept, beyond) VALUES (:hid, :reason, :n, 0)
ON CONFLICT (hid, reason) DO UPDATE SET kept = kept + :n;

-- name: left
-- How many URLs of a host wait.
SELECT n_queued + n_delayed FROM host WHERE hid = ?;

-- name: bury_queued
-- Queued URLs of a host end.
INSERT INTO outcome (
  id, hid, class, tail, url, depth, hops, attempts, parent, relation, found_at, label, meta, request, history,
  generation, route, state, at, reason, detail
) SELECT
  id, hid, class, tail, url, depth, hops, attempts, parent, relation, found_at, label, meta, request, history,
  generation, route, :state, :now, :reason, :detail
FROM queue WHERE hid = :hid ORDER BY class, id LIMIT :limit;

-- name: forget_more
-- And leave the queue: what there was to say of them beyond their rows.
DELETE FROM queued_more WHERE id IN (SELECT id FROM queued WHERE hid = :hid ORDER BY class, id LIMIT :limit);

-- name: forget_queued
-- And their rows.
DELETE FROM queued WHERE hid = :hid AND (class, id) IN (
  SELECT class, id FROM queued WHERE hid = :hid ORDER BY class, id LIMIT :limit
);

-- name: bury_delayed
-- Delayed URLs of a host end.
INSERT INTO outcome (
  id, hid, class, tail, url, depth, hops, attempts, parent, relation, found_at, label, meta, request, history,
  generation, route, state, at, reason, detail
) SELECT
  id, hid, class, tail, url, depth, hops, attempts, parent, relation, found_at, label, meta, request, history,
  generation, route, :state, :now, :reason, :detail
FROM delayed WHERE hid = :hid ORDER BY due_at, id LIMIT :limit;

-- name: forget_delayed
-- And wait no longer.
DELETE FROM delayed WHERE (due_at, id) IN (
  SELECT due_at, id FROM delayed WHERE hid = :hid ORDER BY due_at, id LIMIT :limit
);
