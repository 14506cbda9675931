-- name: due
-- Hold free hosts that may be visited now: of each class at most so many, the longest waiting first, in the order of
-- the list, until there are enough. Those that somebody else holds are passed over.
SELECT h.hid, h.name, h.seed, h.fetched, h.next_at, h.delay_ms, h.crawl_delay_ms, h.failures, h.slowed,
  h.latency_ms, h.class, h.address
FROM unnest(%(class)s::smallint[], %(most)s::integer[]) AS k (class, most)
CROSS JOIN LATERAL (
  SELECT * FROM host h
  WHERE h.class = k.class AND h.ready AND h.token IS NULL AND h.next_at <= %(now)s AND h.hid <> ALL (%(taken)s::bigint[])
  ORDER BY h.next_at LIMIT k.most FOR UPDATE SKIP LOCKED
) AS h
LIMIT %(enough)s;

-- name: best
-- The first URLs of the queues of hosts that are held. A statement of its own: one that also takes the hosts would see
-- their queues as they were before it waited, with URLs that others have finished since.
SELECT
  q.hid, q.class, q.id, q.tail, q.url, q.depth, q.hops, q.attempts, q.parent, q.relation, q.found_at, q.suspect,
  q.label, q.meta, q.request, q.history, q.generation, q.settled, q.route
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[], %(most)s::integer[]) AS k (shard, hid, most)
CROSS JOIN LATERAL (
  SELECT * FROM queue q WHERE q.shard = k.shard AND q.hid = k.hid ORDER BY q.class, q.id LIMIT k.most
) AS q;

-- name: record
-- What leases are given.
INSERT INTO lease (shard, hid, token, classes, ids)
SELECT k.shard, k.hid, k.token, k.classes::smallint[], k.ids::bigint[]
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[], %(token)s::bigint[], %(classes)s::text[], %(ids)s::text[])
  AS k (shard, hid, token, classes, ids);

-- name: occupy
-- A worker takes hosts, and turns of their groups.
UPDATE host h SET
  token = k.token, lease_until = %(until)s, worker = %(worker)s, n_leased = k.urls, pace_group = k.pace_group
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[], %(token)s::bigint[], %(urls)s::integer[], %(pace_group)s::text[])
  AS k (shard, hid, token, urls, pace_group)
WHERE h.shard = k.shard AND h.hid = k.hid;

-- name: park
-- Hosts whose budget is spent rest; their URLs stay queued.
UPDATE host h SET parked = 'host_budget', spent = h.fetched
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[]) AS k (shard, hid)
WHERE h.shard = k.shard AND h.hid = k.hid;

-- name: renew
-- Live leases are held longer.
UPDATE host h SET lease_until = %(until)s
FROM (
  SELECT h.shard, h.hid, h.token FROM host h
  WHERE h.token IS NOT NULL AND h.lease_until > 0 AND h.token = ANY (%(token)s::bigint[])
  ORDER BY h.shard, h.hid FOR UPDATE
) AS k
WHERE h.shard = k.shard AND h.hid = k.hid AND h.token = k.token
RETURNING h.token;

-- name: next_due
-- The first time at which there is something to lease or to reclaim; -1 when hosts wait to be emptied or
-- unparked.
SELECT least(
  (SELECT min(f.next_at) FROM generate_series(0, 9) AS c (class) CROSS JOIN LATERAL (
    SELECT h.next_at FROM host h WHERE h.class = c.class AND h.ready AND h.token IS NULL ORDER BY h.next_at LIMIT 1
  ) AS f),
  (SELECT d.due_at FROM delayed d ORDER BY d.due_at LIMIT 1),
  (SELECT g.next_at FROM pace_group g WHERE g.wanted AND NOT EXISTS (
     SELECT FROM host h WHERE h.pace_group = g.name AND h.token IS NOT NULL AND h.pace_group IS NOT NULL
       AND h.worker IS DISTINCT FROM %(worker)s
   ) ORDER BY g.next_at LIMIT 1),
  (SELECT h.lease_until FROM host h WHERE h.token IS NOT NULL ORDER BY h.lease_until LIMIT 1),
  (SELECT -1 FROM host h WHERE h.emptying AND h.token IS NULL LIMIT 1),
  (SELECT -1 FROM host h WHERE h.parked = 'host_budget' AND NOT h.seed AND h.spent < %(pages)s AND h.fetched < %(pages)s
   LIMIT 1),
  (SELECT -1 FROM host h WHERE h.parked = 'host_budget' AND h.seed AND h.spent < %(seed_pages)s
     AND h.fetched < %(seed_pages)s LIMIT 1)
);

-- name: take_turn
-- Wait for the others who lease under a page budget.
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' budget', 0));

-- name: spent
-- Requests that were settled, and URLs that stand for one.
SELECT coalesce(sum(fetches), 0)::bigint, coalesce(sum(leased), 0)::bigint FROM tally;
