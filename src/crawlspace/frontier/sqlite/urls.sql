-- name: queued
-- A waiting URL, whatever its class.
SELECT
  hid, class, id, tail, url, depth, hops, attempts, parent, relation, found_at, suspect, label, meta, request, history,
  generation, settled, route
FROM queue WHERE hid = ? AND class IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9) AND id = ?;

-- name: enqueue
-- A URL joins its host's queue.
INSERT INTO queue (
  hid, class, id, tail, url, depth, hops, attempts, parent, relation, found_at, suspect, label, meta, request, history,
  generation, settled, route
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: enqueue_link
-- Links join their hosts' queues for the first time, with nothing else to say.
INSERT INTO queued (hid, class, id, tail, short, depth, parent, found_at) VALUES (?*8);

-- name: take
-- A queued URL of this class, unless this lease sent it back there already.
SELECT
  hid, class, id, tail, url, depth, hops, attempts, parent, relation, found_at, suspect, label, meta, request, history,
  generation, settled, route
FROM queue WHERE hid = ? AND class = ? AND id = ? AND settled IS NOT ?;

-- name: leave
-- A URL leaves its host's queue.
DELETE FROM queued WHERE hid = ? AND class = ? AND id = ?;

-- name: leave_more
-- And what there was to say of it beyond its row.
DELETE FROM queued_more WHERE id = ?;

-- name: delayed
-- A URL that waits for a time, and that time last.
SELECT
  hid, class, id, tail, url, depth, hops, attempts, parent, relation, found_at, suspect, label, meta, request, history,
  generation, settled, route,
  due_at
FROM delayed WHERE id = ?;

-- name: delay
-- A URL begins to wait for a time.
INSERT INTO delayed (
  hid, class, id, tail, url, depth, hops, attempts, parent, relation, found_at, suspect, label, meta, request, history,
  generation, settled, route,
  due_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: undelay
-- A URL waits for a time no longer.
DELETE FROM delayed WHERE due_at = ? AND id = ?;

-- name: ended
-- State, reason and settling lease of a URL with an outcome.
SELECT state, reason, token FROM outcome WHERE id = ?;

-- name: end
-- A URL gets its outcome.
INSERT INTO outcome (
  id, hid, class, tail, url, depth, hops, attempts, parent, relation, found_at, label, meta, request, history, generation,
  route, state, at, token, reason, detail, requested_at, status, elapsed_ms, segment, offset, length, digest, mime, size, etag,
  last_modified, target, copy_of, next_visit, interval_ms, changed, content
) VALUES (
  ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
);

-- name: end_page
-- URLs get the outcomes of ordinary pages: NULLs that are written out cost far more.
INSERT INTO outcome (
  id, hid, class, tail, url, depth, hops, attempts, parent, found_at, generation, state, at, token, requested_at, status,
  elapsed_ms, segment, offset, length, digest, mime, size, etag, last_modified
) VALUES (?*25);

-- name: forget_way
-- The next claim of a key is to look at its URL, whatever the claims before it were.
UPDATE seen SET way = NULL WHERE fp = ?;

-- name: reopen
-- An outcome is undone: the columns of a waiting URL with all its tries. The lease that settled it may be alive still.
DELETE FROM outcome WHERE id = ? AND state = ? RETURNING
  hid, class, id, tail, url, depth, hops, 0, parent, relation, found_at, 0, label, meta, request, history,
  generation, token, NULL;

-- name: held
-- The URLs of a host's live lease, as a JSON array of [class, id].
SELECT urls FROM lease WHERE token = ?;

-- name: last
-- The last number given out.
SELECT last FROM serial WHERE name = ?;

-- name: give
-- Numbers up to this one are given out.
UPDATE serial SET last = ? WHERE name = ?;
