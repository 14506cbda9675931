-- name: expired
-- Leases whose time is over.
SELECT token, hid FROM host WHERE token IS NOT NULL AND lease_until <= ? ORDER BY lease_until LIMIT ?;

-- name: live
-- Leases, whatever their time.
SELECT token, hid FROM host WHERE token IS NOT NULL ORDER BY lease_until LIMIT ?;

-- name: of_worker
-- Leases of one worker, whatever their time.
SELECT token, hid FROM host WHERE token IS NOT NULL AND worker = ? ORDER BY lease_until LIMIT ?;

-- name: suspect
-- A lease that held this URL was lost: counted when it was the only one, marked when it was not.
INSERT INTO queued_more (id, suspect)
SELECT q.id, 1 FROM queued q LEFT JOIN queued_more m ON m.id = q.id
WHERE q.hid = ? AND q.class = ? AND q.id = ? AND m.settled IS NOT ?
ON CONFLICT (id) DO UPDATE SET suspect = CASE WHEN ? THEN suspect + 1 ELSE max(suspect, 1) END RETURNING suspect;

-- name: free
-- A host whose lease was lost waits at least its delay.
UPDATE host SET
  token = NULL, lease_until = NULL, worker = NULL, n_leased = 0,
  next_at = max(next_at, :now + max(coalesce(delay_ms, :first_delay_ms), coalesce(crawl_delay_ms, 0))),
  class = coalesce((SELECT q.class FROM queued q WHERE q.hid = host.hid ORDER BY q.class, q.id LIMIT 1), class)
WHERE hid = :hid;

-- name: drop_lease
-- A lease is over.
DELETE FROM lease WHERE token = ?;

-- name: clamp
-- No free host of this class waits beyond the bound: a clock that was set back must not silence it.
UPDATE host SET next_at = :bound WHERE class = :class AND ready AND token IS NULL AND next_at > :bound;
