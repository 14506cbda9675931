-- name: known
-- Which of these keys were claimed before, and their numbers.
SELECT fp, id FROM seen WHERE fp IN (?*);

-- name: remember
-- Keys that are claimed now, for ever.
INSERT INTO seen (fp, id) VALUES (?, ?);

-- name: host
-- What a claim must know of its host.
SELECT seed, met, n_queued + n_delayed, token, held = 'blocked' FROM host WHERE hid = ?;

-- name: add_host
-- A host that is named for the first time.
INSERT INTO host (hid, name) VALUES (?, ?);

-- name: depth_in_class
-- Whether a URL waits in this class, and at which depth: all that most repeated claims ask.
SELECT depth FROM queue WHERE hid = ? AND class = ? AND id = ?;

-- name: refusals
-- How many refusals of this reason the host has: kept, and only counted.
SELECT kept, beyond FROM refusal WHERE hid = ? AND reason = ?;

-- name: write_refusals
-- Set those numbers.
REPLACE INTO refusal (hid, reason, kept, beyond) VALUES (?, ?, ?, ?);
