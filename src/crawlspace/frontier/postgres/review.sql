-- name: queued
-- URLs of the queue in its order, from the first behind a place.
SELECT
  q.hid, q.class, q.id, q.tail, q.url, q.depth, q.hops, q.relation, NULL::text, NULL::integer, 0::bigint, h.name
FROM (
  SELECT * FROM queue q WHERE (q.shard, q.hid, q.class, q.id) > (%(shard)s, %(hid)s, %(class)s, %(id)s)
  ORDER BY q.shard, q.hid, q.class, q.id LIMIT %(limit)s
) AS q
JOIN host h ON h.shard = q.shard AND h.hid = q.hid
ORDER BY q.hid, q.class, q.id;

-- name: delayed
-- URLs that wait for a time, by host and number, from the first behind a place.
SELECT
  d.hid, d.class, d.id, d.tail, d.url, d.depth, d.hops, d.relation, NULL::text, NULL::integer, 0::bigint, h.name
FROM (
  SELECT * FROM delayed d WHERE (d.shard, d.hid, d.id) > (%(shard)s, %(hid)s, %(id)s)
  ORDER BY d.shard, d.hid, d.id LIMIT %(limit)s
) AS d
JOIN host h ON h.shard = d.shard AND h.hid = d.hid
ORDER BY d.hid, d.id;

-- name: refused
-- Refused URLs by host, reason and number, from the first behind a place.
SELECT
  o.hid, o.class, o.id, o.tail, o.url, o.depth, o.hops, o.relation, o.reason, o.status, o.at, h.name
FROM (
  SELECT * FROM outcome o WHERE o.state = 5 AND (o.hid, o.reason, o.id) > (%(hid)s, %(reason)s, %(id)s)
  ORDER BY o.hid, o.reason, o.id LIMIT %(limit)s
) AS o
JOIN host h ON h.shard = o.shard AND h.hid = o.hid
ORDER BY o.hid, o.reason, o.id;

-- name: dead
-- Dead letters by number, from the first above one.
SELECT
  o.hid, o.class, o.id, o.tail, o.url, o.depth, o.hops, o.relation, o.reason, o.status, o.at, h.name
FROM (SELECT * FROM outcome o WHERE o.state = 6 AND o.id > %(id)s ORDER BY o.id LIMIT %(limit)s) AS o
JOIN host h ON h.shard = o.shard AND h.hid = o.hid
ORDER BY o.id;

-- name: refused_more
-- Kept refusals of hosts and reasons come or go.
INSERT INTO refusal AS r (shard, hid, reason, kept, beyond)
SELECT k.shard, k.hid, k.reason, greatest(k.n, 0), 0
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[], %(reason)s::text[], %(n)s::bigint[]) AS k (shard, hid, reason, n)
ON CONFLICT (shard, hid, reason) DO UPDATE SET kept = r.kept + (
  SELECT k.n FROM unnest(%(hid)s::bigint[], %(reason)s::text[], %(n)s::bigint[]) AS k (hid, reason, n)
  WHERE k.hid = r.hid AND k.reason = r.reason
);

-- name: drop
-- Dead letters become refusals.
UPDATE outcome o SET state = 5, reason = k.reason, at = %(now)s
FROM unnest(%(shard)s::smallint[], %(id)s::bigint[], %(reason)s::text[]) AS k (shard, id, reason)
WHERE o.shard = k.shard AND o.id = k.id AND o.state = 6;

-- name: reclass
-- The classes of hosts that have lost or won URLs.
UPDATE host h SET class = coalesce((
  SELECT q.class FROM queue q WHERE q.shard = h.shard AND q.hid = h.hid ORDER BY q.class, q.id LIMIT 1
), h.class)
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[]) AS k (shard, hid)
WHERE h.shard = k.shard AND h.hid = k.hid;
