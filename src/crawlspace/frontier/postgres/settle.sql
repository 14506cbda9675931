-- name: first_with
-- These bytes belong to these URLs from now on, unless others had them first: those to whom they do.
INSERT INTO content (shard, digest, id) SELECT * FROM unnest(%(shard)s::smallint[], %(digest)s::uuid[], %(id)s::bigint[])
ON CONFLICT DO NOTHING RETURNING id;

-- name: who_had
-- The URLs that had these bytes first, in the order of the list.
SELECT k.n, c.id
FROM unnest(%(shard)s::smallint[], %(digest)s::uuid[]) WITH ORDINALITY AS k (shard, digest, n)
CROSS JOIN LATERAL (SELECT c.id FROM content c WHERE c.shard = k.shard AND c.digest = k.digest LIMIT 1) AS c;

-- name: refuse
-- So many refusals more that are kept.
INSERT INTO refusal AS r (shard, hid, reason, kept, beyond)
SELECT k.shard, k.hid, k.reason, k.n, 0
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[], %(reason)s::text[], %(n)s::bigint[]) AS k (shard, hid, reason, n)
ON CONFLICT (shard, hid, reason) DO UPDATE SET kept = r.kept + excluded.kept;

-- name: reach
-- Settled captures reach this far into archive files; those named for the first time get a number.
INSERT INTO segment AS s (worker, name, length)
SELECT %(worker)s, k.name, k.length FROM unnest(%(name)s::text[], %(length)s::bigint[]) AS k (name, length)
ON CONFLICT (worker, name) DO UPDATE SET length = greatest(s.length, excluded.length)
RETURNING s.name, s.id;

-- name: release
-- Visits are over: the hosts are free and their clocks are the visitors'.
UPDATE host h SET
  token = NULL, lease_until = NULL, worker = NULL, n_leased = 0, released = k.token,
  next_at = k.next_at, delay_ms = k.delay_ms, crawl_delay_ms = k.crawl_delay_ms, failures = k.failures,
  slowed = k.slowed, latency_ms = k.latency_ms, address = coalesce(k.address, h.address),
  class = coalesce((
    SELECT q.class FROM queue q WHERE q.shard = h.shard AND q.hid = h.hid ORDER BY q.class, q.id LIMIT 1
  ), h.class)
FROM unnest(
  %(shard)s::smallint[], %(hid)s::bigint[], %(token)s::bigint[], %(next_at)s::bigint[], %(delay_ms)s::bigint[],
  %(crawl_delay_ms)s::bigint[], %(failures)s::integer[], %(slowed)s::integer[],
  %(latency_ms)s::integer[], %(address)s::text[]
) AS k (shard, hid, token, next_at, delay_ms, crawl_delay_ms, failures, slowed, latency_ms, address)
WHERE h.shard = k.shard AND h.hid = k.hid;
