-- name: known
-- Which of these keys must be looked at, by their places: new ones, which have no number yet, and those of which it is
-- not known that they were claimed in a way as good as class and depth are. The keys stand end to end in one value: to
-- bind each of them, and to give back those that are known, takes longer than to find them.
WITH asked (place) AS (VALUES (#*))
SELECT place, s.id, s.way FROM asked LEFT JOIN seen s ON s.fp = substr(:keys, 16 * place + 1, 16)
WHERE place < :n AND (s.way IS NULL OR s.way % 10 > :class OR s.way / 10 > :depth);

-- name: remember
-- Keys that are claimed now, for ever.
INSERT INTO seen (fp, id, way) VALUES (?*3);

-- name: remember_refused
-- Keys whose claims are refused: their repeats are looked at.
INSERT INTO seen (fp, id) VALUES (?, ?);

-- name: better_way
-- A key was claimed in a better way.
UPDATE seen SET way = ? WHERE fp = ?;

-- name: hosts
-- What claims must know of their hosts. The class is that of the best URL in the queue.
SELECT
  hid, seed, met, n_queued + n_delayed, token, held = 'blocked', parked = 'address_hosts',
  CASE WHEN n_queued > 0 THEN class END
FROM host WHERE hid IN (?*);

-- name: add_host
-- A host that is named for the first time.
INSERT INTO host (hid, name) VALUES (?, ?);

-- name: waiting_so
-- Which of these URLs wait in this class, as ten times their number and the class, and at which depth: of those whose
-- key does not say that a claim is no better.
WITH asked (hid, class, id) AS (VALUES (?*3))
SELECT 10 * q.id + q.class, q.depth FROM asked CROSS JOIN queued q
ON q.hid = asked.hid AND q.class = asked.class AND q.id = asked.id;

-- name: refusals
-- How many refusals of this reason the host has: kept, and only counted.
SELECT kept, beyond FROM refusal WHERE hid = ? AND reason = ?;

-- name: write_refusals
-- Set those numbers.
REPLACE INTO refusal (hid, reason, kept, beyond) VALUES (?, ?, ?, ?);
