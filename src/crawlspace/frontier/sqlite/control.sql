-- name: ask
-- A command is written down.
INSERT INTO control (asked_at, command) VALUES (?, ?) RETURNING id;

-- name: forget
-- Commands that were carried out before a time; the newest stays, so that no number is given twice.
DELETE FROM control WHERE done_at < ? AND id < (SELECT max(id) FROM control);

-- name: open
-- Commands that are not carried out yet, in order.
SELECT id, command, progress, 0 FROM control WHERE done_at IS NULL ORDER BY id LIMIT ?;

-- name: one
-- A command, and how far it is.
SELECT id, command, progress, done_at IS NOT NULL FROM control WHERE id = ?;

-- name: progress
-- How far a command is.
UPDATE control SET progress = ?, done_at = ? WHERE id = ?;

-- name: add_host
-- A host that is named for the first time.
INSERT INTO host (hid, name) VALUES (?, ?) ON CONFLICT DO NOTHING;

-- name: hold
-- A person pauses or blocks a host. One that is being emptied because it was given up goes on with that first.
UPDATE host SET
  held = :held,
  parked = CASE WHEN parked = 'condemned' THEN parked ELSE :held END,
  ready = 0
WHERE hid = :hid;

-- name: free
-- And takes it back. A budget that is used up parks it again when its turn comes.
UPDATE host SET
  held = NULL,
  parked = CASE WHEN parked IN ('paused', 'blocked') THEN NULL ELSE parked END,
  ready = n_queued > 0 AND (parked IS NULL OR parked IN ('paused', 'blocked'))
WHERE hid = ?;

-- name: alarm
-- The kind of trap that a host's URLs look like.
UPDATE host SET alarm = ? WHERE hid = ?;
