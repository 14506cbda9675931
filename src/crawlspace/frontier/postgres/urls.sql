-- name: waiting
-- Waiting URLs, whatever their class, each with its time if it waits for one, and whether a lease holds it.
SELECT
  q.hid, q.class, q.id, q.tail, q.url, q.depth, q.hops, q.attempts, q.parent, q.relation, q.found_at, q.suspect,
  q.label, q.meta, q.request, q.history, q.generation, q.settled, q.route,
  NULL::bigint, coalesce(h.token IS DISTINCT FROM q.settled AND q.id = ANY (l.ids), false)
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[], %(id)s::bigint[]) AS k (shard, hid, id)
CROSS JOIN LATERAL (
  SELECT * FROM queue q WHERE q.shard = k.shard AND q.hid = k.hid
    AND q.class = ANY ('{0,1,2,3,4,5,6,7,8,9}'::smallint[]) AND q.id = k.id LIMIT 1
) AS q
JOIN host h ON h.shard = k.shard AND h.hid = k.hid
LEFT JOIN lease l ON l.shard = k.shard AND l.token = h.token
UNION ALL
SELECT
  d.hid, d.class, d.id, d.tail, d.url, d.depth, d.hops, d.attempts, d.parent, d.relation, d.found_at, d.suspect,
  d.label, d.meta, d.request, d.history, d.generation, d.settled, d.route,
  d.due_at, false
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[], %(id)s::bigint[]) AS k (shard, hid, id)
CROSS JOIN LATERAL (SELECT * FROM delayed d WHERE d.shard = k.shard AND d.hid = k.hid AND d.id = k.id LIMIT 1) AS d;

-- name: ended
-- URLs with an outcome: state, reason, settling lease, and the columns of a waiting URL with all its tries.
SELECT o.state, o.reason, o.token,
  o.hid, o.class, o.id, o.tail, o.url, o.depth, o.hops, 0, o.parent, o.relation, o.found_at, 0, o.label, o.meta,
  o.request, o.history, o.generation, o.token, NULL::text
FROM unnest(%(shard)s::smallint[], %(id)s::bigint[]) AS k (shard, id)
CROSS JOIN LATERAL (SELECT * FROM outcome o WHERE o.shard = k.shard AND o.id = k.id LIMIT 1) AS o;

-- name: enqueue
-- URLs join their hosts' queues. What is empty in all rows comes as no list at all.
INSERT INTO queue (
  shard, hid, class, id, tail, url, depth, hops, attempts, parent, relation, found_at, suspect, label, meta,
  request, history, generation, settled, route
)
SELECT
  shard, hid, class, id, tail, url, depth, hops, coalesce(attempts, 0), parent, relation, found_at, coalesce(suspect, 0),
  label, meta, request, history, coalesce(generation, 0), settled, route
FROM unnest(
  %(shard)s::smallint[], %(hid)s::bigint[], %(class)s::smallint[], %(id)s::bigint[], %(tail)s::bytea[],
  %(url)s::text[], %(depth)s::integer[], %(hops)s::integer[], %(attempts)s::integer[], %(parent)s::bigint[],
  %(relation)s::text[], %(found_at)s::bigint[], %(suspect)s::integer[], %(label)s::text[], %(meta)s::text[],
  %(request)s::bytea[], %(history)s::text[], %(generation)s::integer[], %(settled)s::bigint[],
  %(route)s::text[]
) AS k (
  shard, hid, class, id, tail, url, depth, hops, attempts, parent, relation, found_at, suspect, label, meta,
  request, history, generation, settled, route
);

-- name: delay
-- URLs begin to wait for a time.
INSERT INTO delayed (
  due_at, shard, hid, class, id, tail, url, depth, hops, attempts, parent, relation, found_at, suspect, label, meta,
  request, history, generation, settled, route
)
SELECT
  due_at, shard, hid, class, id, tail, url, depth, hops, coalesce(attempts, 0), parent, relation, found_at,
  coalesce(suspect, 0), label, meta, request, history, coalesce(generation, 0), settled, route
FROM unnest(
  %(due_at)s::bigint[], %(shard)s::smallint[], %(hid)s::bigint[], %(class)s::smallint[], %(id)s::bigint[],
  %(tail)s::bytea[], %(url)s::text[], %(depth)s::integer[], %(hops)s::integer[], %(attempts)s::integer[],
  %(parent)s::bigint[], %(relation)s::text[], %(found_at)s::bigint[], %(suspect)s::integer[], %(label)s::text[],
  %(meta)s::text[], %(request)s::bytea[], %(history)s::text[], %(generation)s::integer[], %(settled)s::bigint[],
  %(route)s::text[]
) AS k (
  due_at, shard, hid, class, id, tail, url, depth, hops, attempts, parent, relation, found_at, suspect, label, meta,
  request, history, generation, settled, route
);

-- name: take
-- URLs leave their hosts' queues, unless the lease that asks sent them back there already.
DELETE FROM queue q
USING unnest(%(shard)s::smallint[], %(hid)s::bigint[], %(class)s::smallint[], %(id)s::bigint[], %(token)s::bigint[])
  AS k (shard, hid, class, id, token)
WHERE q.shard = k.shard AND q.hid = k.hid AND q.class = k.class AND q.id = k.id
  AND q.settled IS DISTINCT FROM k.token
RETURNING
  q.hid, q.class, q.id, q.tail, q.url, q.depth, q.hops, q.attempts, q.parent, q.relation, q.found_at, q.suspect,
  q.label, q.meta, q.request, q.history, q.generation, q.settled, q.route;

-- name: better_queued
-- Queued URLs get a better class or a better way.
UPDATE queue q SET class = k.new_class, depth = k.depth, hops = k.hops, parent = k.parent, relation = k.relation
FROM unnest(
  %(shard)s::smallint[], %(hid)s::bigint[], %(class)s::smallint[], %(id)s::bigint[], %(new_class)s::smallint[],
  %(depth)s::integer[], %(hops)s::integer[], %(parent)s::bigint[], %(relation)s::text[]
) AS k (shard, hid, class, id, new_class, depth, hops, parent, relation)
WHERE q.shard = k.shard AND q.hid = k.hid AND q.class = k.class AND q.id = k.id;

-- name: better_delayed
-- URLs that wait for a time get a better class or a better way.
UPDATE delayed d SET class = k.new_class, depth = k.depth, hops = k.hops, parent = k.parent, relation = k.relation
FROM unnest(
  %(shard)s::smallint[], %(hid)s::bigint[], %(id)s::bigint[], %(new_class)s::smallint[],
  %(depth)s::integer[], %(hops)s::integer[], %(parent)s::bigint[], %(relation)s::text[]
) AS k (shard, hid, id, new_class, depth, hops, parent, relation)
WHERE d.shard = k.shard AND d.hid = k.hid AND d.id = k.id;

-- name: undelay
-- URLs wait for a time no longer.
DELETE FROM delayed d USING unnest(%(shard)s::smallint[], %(hid)s::bigint[], %(id)s::bigint[]) AS k (shard, hid, id)
WHERE d.shard = k.shard AND d.hid = k.hid AND d.id = k.id;

-- name: end
-- URLs get their outcomes.
INSERT INTO outcome (
  shard, id, hid, class, tail, url, depth, hops, attempts, parent, relation, found_at, label, meta, request,
  history, generation, route, state, at, token, reason, detail, requested_at, status, elapsed_ms, segment, "offset",
  length, digest, mime, size, etag, last_modified, target, copy_of,
  next_visit, interval_ms, changed, content
)
SELECT
  shard, id, hid, class, tail, url, depth, hops, coalesce(attempts, 0), parent, relation, found_at, label, meta, request,
  history, coalesce(generation, 0), route, state, at, token, reason, detail, requested_at, status, elapsed_ms, segment, "offset",
  length, digest, mime, size, etag, last_modified, target, copy_of,
  next_visit, interval_ms, changed, content
FROM unnest(
  %(shard)s::smallint[], %(id)s::bigint[], %(hid)s::bigint[], %(class)s::smallint[], %(tail)s::bytea[],
  %(url)s::text[], %(depth)s::integer[], %(hops)s::integer[], %(attempts)s::integer[], %(parent)s::bigint[],
  %(relation)s::text[], %(found_at)s::bigint[], %(label)s::text[], %(meta)s::text[], %(request)s::bytea[],
  %(history)s::text[], %(generation)s::integer[], %(route)s::text[], %(state)s::smallint[], %(at)s::bigint[], %(token)s::bigint[],
  %(reason)s::text[], %(detail)s::text[], %(requested_at)s::bigint[], %(status)s::integer[],
  %(elapsed_ms)s::integer[], %(segment)s::integer[], %(offset)s::bigint[], %(length)s::bigint[],
  %(digest)s::bytea[], %(mime)s::text[], %(size)s::bigint[], %(etag)s::text[], %(last_modified)s::text[],
  %(target)s::text[], %(copy_of)s::bigint[], %(next_visit)s::bigint[], %(interval_ms)s::bigint[],
  %(changed)s::smallint[], %(content)s::bytea[]
) AS k (
  shard, id, hid, class, tail, url, depth, hops, attempts, parent, relation, found_at, label, meta, request,
  history, generation, route, state, at, token, reason, detail, requested_at, status, elapsed_ms, segment, "offset",
  length, digest, mime, size, etag, last_modified, target, copy_of,
  next_visit, interval_ms, changed, content
);

-- name: reopen
-- Outcomes are undone: the columns of waiting URLs with all their tries. The lease that settled one may be alive still.
DELETE FROM outcome o
USING unnest(%(shard)s::smallint[], %(id)s::bigint[]) AS k (shard, id)
WHERE o.shard = k.shard AND o.id = k.id AND o.state = %(state)s
RETURNING
  o.hid, o.class, o.id, o.tail, o.url, o.depth, o.hops, 0, o.parent, o.relation, o.found_at, 0, o.label, o.meta,
  o.request, o.history, o.generation, o.token, NULL::text;

-- name: tokens
-- The next tokens of leases.
SELECT nextval('token_number') FROM generate_series(1, %(n)s);
