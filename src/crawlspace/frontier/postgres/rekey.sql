-- name: progress
-- How far a re-keying is; held until the transaction ends.
SELECT value FROM meta WHERE key = 'rekey' FOR UPDATE;

-- name: write_facts
-- Set facts.
INSERT INTO meta (key, value) SELECT * FROM unnest(%(key)s::text[], %(value)s::text[])
ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: drop_plan
-- The plan was carried out, or is to be made anew.
TRUNCATE rekey_plan;

-- name: count_urls
-- How many URLs there are, by the totals.
SELECT coalesce(sum(queued + leased + stored + done + redirected + skipped + dead), 0)::bigint FROM tally;

-- name: condemned
-- Whether a host that was given up still has URLs to bury.
SELECT EXISTS (SELECT FROM host h WHERE h.emptying AND h.parked = 'condemned');

-- name: leases
-- Hosts that are leased, by worker, with the name by which he is known and where his directory is.
SELECT coalesce(w.name, ''), count(*), (SELECT m.value FROM meta m WHERE m.key = 'place of worker ' || w.id)
FROM host h LEFT JOIN worker w ON w.id = h.worker
WHERE h.token IS NOT NULL AND h.lease_until > 0 GROUP BY w.id, w.name ORDER BY 1;

-- name: walk_outcome
-- The next URLs with an outcome.
SELECT o.id, o.hid, o.tail, o.url, o.request, o.state, o.target, o.shard, o.id FROM outcome o
WHERE (o.shard, o.id) > (%(a0)s::smallint, %(a1)s::bigint) ORDER BY o.shard, o.id LIMIT %(limit)s;

-- name: walk_queue
-- The next queued URLs.
SELECT q.id, q.hid, q.tail, q.url, q.request, 0, NULL::text, q.shard, q.hid, q.class, q.id FROM queue q
WHERE (q.shard, q.hid, q.class, q.id) > (%(a0)s::smallint, %(a1)s::bigint, %(a2)s::smallint, %(a3)s::bigint)
ORDER BY q.shard, q.hid, q.class, q.id LIMIT %(limit)s;

-- name: walk_delayed
-- The next delayed URLs.
SELECT d.id, d.hid, d.tail, d.url, d.request, 0, NULL::text, d.shard, d.hid, d.id FROM delayed d
WHERE (d.shard, d.hid, d.id) > (%(a0)s::smallint, %(a1)s::bigint, %(a2)s::bigint)
ORDER BY d.shard, d.hid, d.id LIMIT %(limit)s;

-- name: walk_merged
-- The next URLs that were merged before: they may come apart again.
SELECT m.id, m.hid, ''::bytea, m.url, m.request, m.state, m.target, m.id FROM merged m
WHERE m.id > %(a0)s::bigint ORDER BY m.id LIMIT %(limit)s;

-- name: plan
-- URLs' places under the new rules.
INSERT INTO rekey_plan (fp, rank, id, place, hid, tail)
SELECT * FROM unnest(
  %(fp)s::uuid[], %(rank)s::smallint[], %(id)s::bigint[], %(place)s::smallint[], %(hid)s::bigint[], %(tail)s::bytea[]
);

-- name: planned
-- The next URLs of the plan, group after group.
SELECT p.fp, p.rank, p.id, p.place, p.hid, p.tail FROM rekey_plan p
WHERE (p.fp, p.rank, p.id) > (%(a0)s::uuid, %(a1)s::smallint, %(a2)s::bigint) ORDER BY p.fp, p.rank, p.id LIMIT %(limit)s;

-- name: has_merged
-- Whether this store was ever re-keyed.
SELECT EXISTS (SELECT FROM merged);

-- name: followed
-- Whether a URL was found behind a link.
SELECT EXISTS (SELECT FROM outcome WHERE depth > 0) OR EXISTS (SELECT FROM queue WHERE depth > 0);

-- name: outcome_url
-- The address of a URL with an outcome.
SELECT o.url FROM outcome o WHERE o.shard = %(shard)s::smallint AND o.id = %(id)s::bigint;

-- name: queue_url
-- That of a queued one.
SELECT q.url FROM queue q WHERE q.shard = %(shard)s::smallint AND q.hid = %(hid)s::bigint AND q.id = %(id)s::bigint;

-- name: delayed_url
-- That of a delayed one.
SELECT d.url FROM delayed d WHERE d.shard = %(shard)s::smallint AND d.hid = %(hid)s::bigint AND d.id = %(id)s::bigint;

-- name: merged_url
-- That of a merged one.
SELECT m.url FROM merged m WHERE m.id = %(id)s::bigint;

-- name: sources
-- The next URLs whose capture or redirect led to others.
SELECT
  o.shard, o.id, o.hid, o.tail, o.url, o.class, o.depth, o.hops, o.label, o.meta, o.state, o.target, s.name, o."offset",
  o.length
FROM outcome o LEFT JOIN segment s ON s.id = o.segment
WHERE (o.shard, o.id) > (%(shard)s::smallint, %(id)s::bigint) AND o.state IN (3, 4) ORDER BY o.shard, o.id LIMIT %(limit)s;

-- name: merged_sources
-- The same of URLs that were merged, in the name of the URL that stayed.
SELECT
  m.id, m.winner, m.url, m.class, m.depth, m.hops, m.label, m.meta, m.state, m.target, s.name, m."offset", m.length
FROM merged m LEFT JOIN segment s ON s.id = m.segment
WHERE m.id > %(id)s::bigint AND m.state IN (3, 4) ORDER BY m.id LIMIT %(limit)s;

-- name: merged_into
-- The URLs that were merged into one, oldest first.
SELECT m.id, m.url, m.state, m.reason, m.at, m.status, s.name, m."offset", m.length, m.rules
FROM merged m LEFT JOIN segment s ON s.id = m.segment WHERE m.winner = %(id)s::bigint ORDER BY m.id LIMIT %(limit)s;
