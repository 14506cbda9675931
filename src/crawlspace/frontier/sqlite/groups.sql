-- name: clock
-- A group's next time, how many of its hosts are leased, and whether somebody else than this worker leases one.
SELECT
  (SELECT g.next_at FROM pace_group g WHERE g.name = :name),
  (SELECT count(*) FROM host h WHERE h.pace_group = :name AND h.token IS NOT NULL),
  EXISTS (SELECT 1 FROM host h WHERE h.pace_group = :name AND h.token IS NOT NULL AND h.worker IS NOT :worker);

-- name: park
-- A host that may be visited waits for its group.
UPDATE host SET parked = 'group', ready = 0, pace_group = ? WHERE hid = ?;

-- name: want
-- Whether somebody is to be called when the group's time has come.
INSERT INTO pace_group (name, next_at, wanted) VALUES (:name, 0, :wanted)
ON CONFLICT (name) DO UPDATE SET wanted = :wanted;

-- name: give_back
-- A turn of a host's group comes back. The next request to the group waits until this time.
UPDATE pace_group SET next_at = max(next_at, :next_at), wanted = 1
WHERE name = (SELECT pace_group FROM host WHERE hid = :hid);

-- name: of_host
-- The group whose turn a host has.
SELECT pace_group FROM host WHERE hid = ? AND token IS NOT NULL;

-- name: due
-- Groups whose time has come, to which a turn came back, and of which nobody but this worker leases a host.
SELECT g.name FROM pace_group g
WHERE g.wanted AND g.next_at <= :now
  AND NOT EXISTS (SELECT 1 FROM host h WHERE h.pace_group = g.name AND h.token IS NOT NULL AND h.worker IS NOT :worker)
ORDER BY g.next_at LIMIT :limit;

-- name: call
-- Those that wait longest for a group may be visited again.
UPDATE host SET parked = held, ready = n_queued > 0 AND held IS NULL
WHERE hid IN (SELECT hid FROM host WHERE parked = 'group' AND pace_group = ? ORDER BY next_at LIMIT ?);

-- name: next
-- When the first group is due to which a turn came back, those apart of which somebody else leases a host.
SELECT g.next_at FROM pace_group g
WHERE g.wanted
  AND NOT EXISTS (SELECT 1 FROM host h WHERE h.pace_group = g.name AND h.token IS NOT NULL AND h.worker IS NOT ?)
ORDER BY g.next_at LIMIT 1;

-- name: clamp
-- No group waits beyond the bound: a clock that was set back must not silence it.
UPDATE pace_group SET next_at = :bound WHERE wanted AND next_at > :bound;
