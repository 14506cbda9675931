-- name: due
-- Hosts of the first URLs whose next visit is due.
SELECT DISTINCT hid FROM (
  SELECT o.hid FROM outcome o WHERE o.next_visit <= %(now)s ORDER BY o.next_visit LIMIT %(limit)s
) AS first;

-- name: hold_free
-- Hold hosts, but for those that somebody else holds; and whether they cannot have a visit now.
SELECT h.hid, h.held IS NOT DISTINCT FROM 'blocked' OR h.parked IS NOT DISTINCT FROM 'condemned'
  OR (NOT h.seed AND h.n_queued + h.n_delayed >= %(most)s)
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[]) AS k (shard, hid)
CROSS JOIN LATERAL (SELECT * FROM host h WHERE h.shard = k.shard AND h.hid = k.hid FOR UPDATE SKIP LOCKED) AS h;

-- name: postpone
-- Visits that hosts cannot have now are thought of again later.
UPDATE outcome o SET next_visit = %(later)s
FROM (SELECT o.shard, o.id FROM outcome o WHERE o.next_visit <= %(now)s ORDER BY o.next_visit LIMIT %(limit)s) AS k
WHERE o.shard = k.shard AND o.id = k.id AND o.hid = ANY (%(hid)s::bigint[]);

-- name: arrive
-- URLs of held hosts whose next visit is due join their queues in the next generation, with all their tries; how the
-- visits before ended is kept. How many of each host and kind, and their best class.
WITH first AS (
  SELECT o.shard, o.id FROM outcome o WHERE o.next_visit <= %(now)s ORDER BY o.next_visit LIMIT %(limit)s
), gone AS (
  DELETE FROM outcome o USING first f
  WHERE o.shard = f.shard AND o.id = f.id AND o.hid = ANY (%(hid)s::bigint[]) AND o.next_visit <= %(now)s
  RETURNING o.*
), kept AS (
  INSERT INTO visit (
    shard, id, generation, state, at, url, reason, requested_at, status, segment, "offset", length, digest, mime, size,
    etag, last_modified, target, copy_of, interval_ms, changed, content
  )
  SELECT
    shard, id, generation, state, at, url, reason, requested_at, status, segment, "offset", length, digest, mime, size,
    etag, last_modified, target, copy_of, interval_ms, changed, content
  FROM gone
  ON CONFLICT DO NOTHING
), come AS (
  INSERT INTO queue (
    shard, hid, class, id, tail, url, depth, hops, attempts, parent, relation, found_at, suspect, label, meta,
    request, history, generation, settled, route
  )
  SELECT
    shard, hid, class, id, tail, url, depth, hops, 0, parent, relation, found_at, 0, label, meta, request, NULL,
    generation + 1, token, route
  FROM gone
)
SELECT
  hid, state, coalesce(status BETWEEN 200 AND 299, false), count(*)::integer, count(copy_of)::integer, min(class)
FROM gone GROUP BY 1, 2, 3;

-- name: visits
-- The latest visits of URLs, the newest of each first.
SELECT
  v.id, v.generation, v.state, v.at, v.url, v.reason, v.requested_at, v.status, v.segment, v."offset", v.length, v.digest,
  v.mime, v.etag, v.last_modified, v.target, v.copy_of, v.interval_ms, v.changed, v.content
FROM unnest(%(shard)s::smallint[], %(id)s::bigint[]) AS k (shard, id)
CROSS JOIN LATERAL (
  SELECT * FROM visit v WHERE v.shard = k.shard AND v.id = k.id ORDER BY v.generation DESC LIMIT %(limit)s
) AS v;

-- name: rounds
-- The visits of keys that others have followed, with the key's place in the list, and their archive files.
SELECT
  k.n, v.id, v.generation, v.state, v.at, v.url, v.reason, v.requested_at, v.status, v.segment, v."offset", v.length,
  v.digest, v.mime, v.etag, v.last_modified, v.target, v.copy_of, v.interval_ms, v.changed, v.content,
  (SELECT s.name FROM segment s WHERE s.id = v.segment)
FROM unnest(%(shard)s::smallint[], %(fp)s::uuid[]) WITH ORDINALITY AS k (shard, fp, n)
CROSS JOIN LATERAL (SELECT s.id FROM seen s WHERE s.shard = k.shard AND s.fp = k.fp LIMIT 1) AS s
CROSS JOIN LATERAL (SELECT * FROM visit v WHERE v.shard = k.shard AND v.id = s.id ORDER BY v.generation LIMIT 100000) AS v
ORDER BY k.n, v.generation;

-- name: next_visit
-- When the first next visit is due.
SELECT o.next_visit FROM outcome o WHERE o.next_visit IS NOT NULL ORDER BY o.next_visit LIMIT 1;

-- name: counted
-- How visits ended, by generation.
SELECT generation, state, changed, sum(present)::bigint, sum(past)::bigint FROM round GROUP BY 1, 2, 3;

-- name: batch_end
-- The number at which the next outcomes end.
SELECT max(f.id) FROM (
  SELECT o.id FROM unnest(%(all)s::smallint[]) AS k (shard)
  CROSS JOIN LATERAL (
    SELECT o.id FROM outcome o WHERE o.shard = k.shard AND o.id > %(after)s ORDER BY o.id LIMIT %(limit)s
  ) AS o
  ORDER BY o.id LIMIT %(limit)s
) AS f;

-- name: plan
-- Outcomes without a plan, or with one made under other settings, get their next visit.
UPDATE outcome o SET
  interval_ms = least(greatest(coalesce(o.interval_ms, %(first)s), %(shortest)s), %(longest)s),
  next_visit = o.at + least(greatest(coalesce(o.interval_ms, %(first)s), %(shortest)s), %(longest)s)
WHERE o.shard = ANY (%(all)s::smallint[]) AND o.id > %(after)s AND o.id <= %(end)s AND o.state IN (3, 4);

-- name: bring_forward
-- Somebody says that pages were changed after they were fetched: they are due now.
UPDATE outcome o SET next_visit = %(now)s
FROM unnest(%(shard)s::smallint[], %(id)s::bigint[], %(modified)s::bigint[]) AS k (shard, id, modified)
WHERE o.shard = k.shard AND o.id = k.id AND o.next_visit > %(now)s AND o.requested_at < k.modified;
