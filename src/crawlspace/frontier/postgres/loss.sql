-- name: expired
-- Hold hosts whose leases are over, but for those that somebody else holds.
SELECT h.token, h.hid FROM host h WHERE h.token IS NOT NULL AND h.lease_until <= %(now)s
ORDER BY h.lease_until LIMIT %(limit)s FOR UPDATE SKIP LOCKED;

-- name: of_worker
-- Hosts that a worker leases, whatever their time.
SELECT h.hid FROM host h WHERE h.token IS NOT NULL AND h.lease_until > 0 AND h.worker = %(worker)s
ORDER BY h.lease_until LIMIT %(limit)s;

-- name: suspect
-- Leases that held these URLs were lost: counted when there was only one, marked when there were more. Those that a
-- lease had sent back are none of its own.
UPDATE queue q SET suspect = CASE WHEN %(alone)s THEN q.suspect + 1 ELSE greatest(q.suspect, 1) END
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[], %(class)s::smallint[], %(id)s::bigint[], %(token)s::bigint[])
  AS k (shard, hid, class, id, token)
WHERE q.shard = k.shard AND q.hid = k.hid AND q.class = k.class AND q.id = k.id
  AND q.settled IS DISTINCT FROM k.token
RETURNING q.hid, q.class, q.id, q.suspect;

-- name: free
-- Hosts whose leases were lost wait at least their delay.
UPDATE host h SET
  token = NULL, lease_until = NULL, worker = NULL, n_leased = 0,
  next_at = greatest(
    h.next_at, %(now)s + greatest(coalesce(h.delay_ms, %(first_delay_ms)s), coalesce(h.crawl_delay_ms, 0))
  ),
  class = coalesce((
    SELECT q.class FROM queue q WHERE q.shard = h.shard AND q.hid = h.hid ORDER BY q.class, q.id LIMIT 1
  ), h.class)
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[]) AS k (shard, hid)
WHERE h.shard = k.shard AND h.hid = k.hid;

-- name: clamp
-- No free host waits beyond the bound: a clock that was set back must not silence it.
UPDATE host h SET next_at = %(bound)s
FROM (
  SELECT h.shard, h.hid FROM generate_series(0, 9) AS c (class) CROSS JOIN LATERAL (
    SELECT * FROM host h WHERE h.class = c.class AND h.ready AND h.token IS NULL AND h.next_at > %(bound)s
    FOR UPDATE SKIP LOCKED
  ) AS h
) AS k
WHERE h.shard = k.shard AND h.hid = k.hid;
