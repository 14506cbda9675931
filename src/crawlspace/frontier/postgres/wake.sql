-- name: anything
-- Whether delayed URLs have come due, hosts are within a budget that was raised, or hosts wait to be emptied.
SELECT
  EXISTS (SELECT FROM delayed d WHERE d.due_at <= %(now)s),
  EXISTS (SELECT FROM host h WHERE h.parked = 'host_budget' AND NOT h.seed AND h.spent < %(pages)s
    AND h.fetched < %(pages)s)
  OR EXISTS (SELECT FROM host h WHERE h.parked = 'host_budget' AND h.seed AND h.spent < %(seed_pages)s
    AND h.fetched < %(seed_pages)s),
  EXISTS (SELECT FROM host h WHERE h.emptying AND h.token IS NULL);

-- name: came_due
-- Hosts of the first URLs whose time has come.
SELECT DISTINCT hid FROM (
  SELECT d.hid FROM delayed d WHERE d.due_at <= %(now)s ORDER BY d.due_at, d.id LIMIT %(limit)s
) AS first;

-- name: hold_free
-- Hold hosts, but for those that somebody else holds.
SELECT h.hid
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[]) AS k (shard, hid)
CROSS JOIN LATERAL (SELECT * FROM host h WHERE h.shard = k.shard AND h.hid = k.hid FOR UPDATE SKIP LOCKED) AS h;

-- name: arrive
-- URLs of held hosts whose time has come join their queues: how many of each host, and their best class.
WITH first AS (
  SELECT d.shard, d.hid, d.id FROM delayed d WHERE d.due_at <= %(now)s ORDER BY d.due_at, d.id LIMIT %(limit)s
), gone AS (
  DELETE FROM delayed d USING first f
  WHERE d.shard = f.shard AND d.hid = f.hid AND d.id = f.id AND f.hid = ANY (%(hid)s::bigint[])
  RETURNING d.*
), come AS (
  INSERT INTO queue (
    shard, hid, class, id, tail, url, depth, hops, attempts, parent, relation, found_at, suspect, label, meta,
    request, history, generation, settled, route
  )
  SELECT
    shard, hid, class, id, tail, url, depth, hops, attempts, parent, relation, found_at, suspect, label, meta,
    request, history, generation, settled, route
  FROM gone
  RETURNING hid, class
)
SELECT hid, count(*)::integer, min(class) FROM come GROUP BY hid;

-- name: raised
-- Hold some of the parked hosts that are within their budget, since it was raised.
SELECT h.hid FROM host h
WHERE h.parked = 'host_budget' AND h.seed = %(seed)s AND h.spent < %(pages)s AND h.fetched < %(pages)s
LIMIT %(limit)s FOR UPDATE SKIP LOCKED;

-- name: unpark
-- Hosts may be visited again.
UPDATE host h SET parked = h.held, condemned = NULL, spent = NULL
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[]) AS k (shard, hid)
WHERE h.shard = k.shard AND h.hid = k.hid;
