-- name: look
-- Which claims are to known URLs, their numbers, and whether such a repeat surely changes nothing.
SELECT k.n, s.id, coalesce(
  (SELECT q.depth <= k.depth FROM queue q
   WHERE q.shard = k.shard AND q.hid = k.hid AND q.class = k.class AND q.id = s.id),
  (SELECT o.state <> 5 OR o.reason <> ALL (%(undone)s::text[]) FROM outcome o WHERE o.shard = k.shard AND o.id = s.id),
  (SELECT q.depth <= k.depth FROM queue q
   WHERE q.shard = k.shard AND q.hid = k.hid
     AND q.class = ANY (('{0,1,2,3,4,5,6,7,8}'::smallint[])[1:k.class]) AND q.id = s.id),
  (SELECT d.class <= k.class AND d.depth <= k.depth FROM delayed d
   WHERE d.shard = k.shard AND d.hid = k.hid AND d.id = s.id),
  false
)
FROM unnest(
  %(shard)s::smallint[], %(fp)s::uuid[], %(hid)s::bigint[], %(class)s::smallint[], %(depth)s::integer[]
) WITH ORDINALITY AS k (shard, fp, hid, class, depth, n)
CROSS JOIN LATERAL (SELECT s.id FROM seen s WHERE s.shard = k.shard AND s.fp = k.fp LIMIT 1) AS s;

-- name: no_seeds
-- Those of the hosts that are there and not yet known as a seed's.
SELECT h.hid
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[]) AS k (shard, hid)
CROSS JOIN LATERAL (
  SELECT h.hid FROM host h WHERE h.shard = k.shard AND h.hid = k.hid AND NOT h.seed LIMIT 1
) AS h;

-- name: known
-- Numbers of keys, in the order of the list.
SELECT k.n, s.id
FROM unnest(%(shard)s::smallint[], %(fp)s::uuid[]) WITH ORDINALITY AS k (shard, fp, n)
CROSS JOIN LATERAL (SELECT s.id FROM seen s WHERE s.shard = k.shard AND s.fp = k.fp LIMIT 1) AS s;

-- name: arrive
-- Keys that are claimed now, for ever, and get the next numbers in their order: those that are refused with their
-- outcomes, the others in the queues of their hosts. What is empty in all rows comes as no list at all.
WITH k AS MATERIALIZED (
  SELECT nextval('url_number') AS id, substring(uuid_send(u.fp) FROM 7) AS tail, u.*
  FROM unnest(
    %(shard)s::smallint[], %(fp)s::uuid[], %(hid)s::bigint[], %(class)s::smallint[], %(url)s::text[], %(depth)s::integer[],
    %(hops)s::integer[], %(parent)s::bigint[], %(relation)s::text[], %(label)s::text[], %(meta)s::text[],
    %(request)s::bytea[], %(reason)s::text[]
  ) AS u (shard, fp, hid, class, url, depth, hops, parent, relation, label, meta, request, reason)
), known AS (
  INSERT INTO seen (shard, fp, id) SELECT shard, fp, id FROM k
), refused AS (
  INSERT INTO outcome (
    shard, id, hid, class, tail, url, depth, hops, attempts, parent, relation, found_at, label, meta, request,
    generation, state, at, reason
  )
  SELECT
    shard, id, hid, class, tail, url, depth, hops, 0, parent, relation, %(now)s, label, meta, request, 0, 5, %(now)s, reason
  FROM k WHERE reason IS NOT NULL
)
INSERT INTO queue (
  shard, hid, class, id, tail, url, depth, hops, attempts, parent, relation, found_at, suspect, label, meta, request,
  generation
)
SELECT shard, hid, class, id, tail, url, depth, hops, 0, parent, relation, %(now)s, 0, label, meta, request, 0
FROM k WHERE reason IS NULL;

-- name: refusals
-- How many refusals the hosts have by reason: kept, and only counted.
SELECT r.hid, r.reason, r.kept, r.beyond
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[]) AS k (shard, hid)
CROSS JOIN LATERAL (SELECT * FROM refusal r WHERE r.shard = k.shard AND r.hid = k.hid OFFSET 0) AS r;

-- name: write_refusals
-- Set those numbers.
INSERT INTO refusal (shard, hid, reason, kept, beyond)
SELECT * FROM unnest(
  %(shard)s::smallint[], %(hid)s::bigint[], %(reason)s::text[], %(kept)s::bigint[], %(beyond)s::bigint[]
)
ON CONFLICT (shard, hid, reason) DO UPDATE SET kept = excluded.kept, beyond = excluded.beyond;
