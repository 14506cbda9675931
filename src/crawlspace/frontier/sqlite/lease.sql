-- name: due
-- Hosts of one class that may be visited now, the longest waiting first.
SELECT hid, name, seed, fetched, next_at, delay_ms, crawl_delay_ms, failures, slowed, latency_ms, address FROM host
WHERE class = ? AND ready AND token IS NULL AND next_at <= ?
ORDER BY next_at LIMIT ?;

-- name: best
-- The first URLs of a host's queue.
SELECT
  hid, class, id, tail, url, depth, hops, attempts, parent, relation, found_at, suspect, label, meta, request, history,
  generation, settled, route
FROM queue WHERE hid = ? ORDER BY class, id LIMIT ?;

-- name: hold
-- What a lease holds.
INSERT INTO lease (token, hid, urls) VALUES (?, ?, ?);

-- name: occupy
-- A worker takes a host, and a turn of its group.
UPDATE host SET token = ?, lease_until = ?, worker = ?, n_leased = ?, pace_group = ? WHERE hid = ?;

-- name: park
-- A host whose budget is spent rests; its URLs stay queued.
UPDATE host SET parked = 'host_budget', ready = 0 WHERE hid = ?;

-- name: within_budget
-- Parked hosts whose budget was raised since.
SELECT hid FROM host WHERE parked = 'host_budget' AND seed = ? AND fetched < coalesce(?, 9223372036854775807) LIMIT ?;

-- name: unpark
-- A host may be visited again.
UPDATE host SET parked = held, condemned = NULL, ready = n_queued > 0 AND held IS NULL WHERE hid = ?;

-- name: came_due
-- Hosts of the URLs whose time has come: how many, and their best class.
SELECT hid, count(*), min(class) FROM (
  SELECT hid, class FROM delayed WHERE due_at <= ? ORDER BY due_at, id LIMIT ?
) GROUP BY hid;

-- name: move_due
-- These URLs join their queues.
INSERT INTO queue (
  hid, class, id, tail, url, depth, hops, attempts, parent, relation, found_at, suspect, label, meta, request, history,
  generation, settled, route
) SELECT
  hid, class, id, tail, url, depth, hops, attempts, parent, relation, found_at, suspect, label, meta, request, history,
  generation, settled, route
FROM delayed WHERE due_at <= ? ORDER BY due_at, id LIMIT ?;

-- name: forget_due
-- And wait for a time no longer.
DELETE FROM delayed WHERE (due_at, id) IN (
  SELECT due_at, id FROM delayed WHERE due_at <= ? ORDER BY due_at, id LIMIT ?
);

-- name: renew
-- A live lease is held longer.
UPDATE host SET lease_until = ? WHERE hid = (SELECT hid FROM lease WHERE token = ?) AND token = ?;

-- name: next_free
-- When the first free host of a class is due.
SELECT min(next_at) FROM host WHERE class = ? AND ready AND token IS NULL;

-- name: next_delayed
-- When the first delayed URL is due.
SELECT min(due_at) FROM delayed;

-- name: next_expiry
-- When the first lease ends.
SELECT min(lease_until) FROM host WHERE token IS NOT NULL;

-- name: next_condemned
-- Whether a host that was given up still has URLs to bury.
SELECT 1 FROM host WHERE parked = 'condemned' LIMIT 1;

-- name: next_blocked
-- Whether a blocked host still has URLs to refuse.
SELECT 1 FROM host WHERE parked = 'blocked' AND n_queued + n_delayed > 0 AND token IS NULL LIMIT 1;

-- name: spent
-- Requests that were settled, and URLs that stand for one.
SELECT (SELECT n FROM tally WHERE name = 'fetches'), (SELECT n FROM tally WHERE name = 'leased');
