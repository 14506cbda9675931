-- name: condemn
-- A held host is given up.
UPDATE host h SET parked = 'condemned', condemned = %(reason)s, spent = h.fetched
WHERE h.shard = %(shard)s AND h.hid = %(hid)s;

-- name: pardon
-- When nothing of it is left to bury, new URLs are tried again, unless a person holds it.
UPDATE host h SET parked = h.held, condemned = NULL, spent = NULL
WHERE h.shard = %(shard)s AND h.hid = %(hid)s AND h.parked = 'condemned' AND h.n_queued + h.n_delayed = 0;

-- name: next
-- Hold a free host whose URLs are to end, unless somebody else is at it.
SELECT h.hid, h.condemned FROM host h WHERE h.emptying AND h.token IS NULL AND h.hid <> ALL (%(done)s::bigint[])
LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: refused
-- So many refusals more are kept.
INSERT INTO refusal AS r (shard, hid, reason, kept, beyond) VALUES (%(shard)s, %(hid)s, %(reason)s, %(n)s, 0)
ON CONFLICT (shard, hid, reason) DO UPDATE SET kept = r.kept + excluded.kept;

-- name: end_queued
-- Queued URLs of a held host end.
WITH gone AS (
  DELETE FROM queue q USING (
    SELECT q.class, q.id FROM queue q WHERE q.shard = %(shard)s AND q.hid = %(hid)s
    ORDER BY q.class, q.id LIMIT %(limit)s
  ) AS k
  WHERE q.shard = %(shard)s AND q.hid = %(hid)s AND q.class = k.class AND q.id = k.id
  RETURNING q.*
), ended AS (
  INSERT INTO outcome (
    shard, id, hid, class, tail, url, depth, hops, attempts, parent, relation, found_at, label, meta, request, history,
    generation, route, state, at, reason, detail
  )
  SELECT
    shard, id, hid, class, tail, url, depth, hops, attempts, parent, relation, found_at, label, meta, request, history,
    generation, route, %(state)s, %(now)s, %(reason)s, %(detail)s
  FROM gone
  RETURNING id
)
SELECT count(*)::integer FROM ended;

-- name: end_delayed
-- Delayed URLs of a held host end.
WITH gone AS (
  DELETE FROM delayed d USING (
    SELECT d.id FROM delayed d WHERE d.shard = %(shard)s AND d.hid = %(hid)s ORDER BY d.id LIMIT %(limit)s
  ) AS k
  WHERE d.shard = %(shard)s AND d.hid = %(hid)s AND d.id = k.id
  RETURNING d.*
), ended AS (
  INSERT INTO outcome (
    shard, id, hid, class, tail, url, depth, hops, attempts, parent, relation, found_at, label, meta, request, history,
    generation, route, state, at, reason, detail
  )
  SELECT
    shard, id, hid, class, tail, url, depth, hops, attempts, parent, relation, found_at, label, meta, request, history,
    generation, route, %(state)s, %(now)s, %(reason)s, %(detail)s
  FROM gone
  RETURNING id
)
SELECT count(*)::integer FROM ended;
