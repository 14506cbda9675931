-- name: tally
-- All totals.
SELECT
  sum(queued)::bigint, sum(leased)::bigint, sum(stored)::bigint, sum(done)::bigint, sum(redirected)::bigint,
  sum(skipped)::bigint, sum(dead)::bigint, sum(pages)::bigint, sum(fetches)::bigint, sum(bytes)::bigint,
  sum(duplicates)::bigint, sum(hosts)::bigint, sum(refused_beyond_cap)::bigint
FROM tally;

-- name: facts
-- What the crawl knows of itself.
SELECT key, value FROM meta WHERE key <> 'edition' AND NOT starts_with(key, 'crew ');

-- name: write_facts
-- Set facts. The key of the fingerprints never changes: who writes it first, decides for all workers.
INSERT INTO meta (key, value) SELECT * FROM unnest(%(key)s::text[], %(value)s::text[])
ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE meta.key <> 'hash_key';

-- name: edition
-- How often something changed that all who work on the crawl must hear of.
SELECT value::bigint FROM meta WHERE key = 'edition';

-- name: new_edition
-- Once more.
UPDATE meta SET value = (value::bigint + 1)::text WHERE key = 'edition';

-- name: revise_fact
-- Set a fact that is what it was.
UPDATE meta SET value = %(new)s WHERE key = %(key)s AND value = %(old)s RETURNING key;

-- name: first_fact
-- Set a fact that is not there.
INSERT INTO meta (key, value) VALUES (%(key)s, %(new)s) ON CONFLICT DO NOTHING RETURNING key;

-- name: held
-- Names of leased hosts that a person holds.
SELECT h.name FROM host h WHERE h.held IS NOT NULL AND h.token IS NOT NULL ORDER BY h.held;

-- name: robots
-- The stored answers of origins.
SELECT r.origin, r.fetched_at, r.expires_at, r.verdict, r.text, r.detail
FROM unnest(%(origin)s::text[]) AS k (origin)
CROSS JOIN LATERAL (SELECT * FROM robots r WHERE r.origin = k.origin LIMIT 1) AS r;

-- name: write_robots
-- Set the answers of origins.
INSERT INTO robots (origin, fetched_at, expires_at, verdict, text, detail)
SELECT * FROM unnest(
  %(origin)s::text[], %(fetched_at)s::bigint[], %(expires_at)s::bigint[], %(verdict)s::text[], %(text)s::text[],
  %(detail)s::text[]
)
ON CONFLICT (origin) DO UPDATE SET
  fetched_at = excluded.fetched_at, expires_at = excluded.expires_at, verdict = excluded.verdict,
  text = excluded.text, detail = excluded.detail;

-- name: hosts_of
-- Names and times of hosts.
SELECT h.hid, h.name, h.next_at
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[]) AS k (shard, hid)
CROSS JOIN LATERAL (SELECT * FROM host h WHERE h.shard = k.shard AND h.hid = k.hid LIMIT 1) AS h;

-- name: outcomes
-- Outcomes, then the names behind their numbers: parent, first copy, archive file. A number alone says no shard.
SELECT
  o.hid, o.class, o.id, o.tail, o.url, o.depth, o.hops, o.attempts, o.parent, o.relation, o.found_at, 0, o.label, o.meta,
  o.request, o.history, o.generation, NULL::bigint, o.route,
  o.state, o.at, o.token, o.reason, o.detail, o.requested_at, o.status, o.elapsed_ms, o.segment, o."offset", o.length,
  o.digest, o.mime, o.size, o.etag, o.last_modified, o.target, o.copy_of,
  o.next_visit, o.interval_ms, o.changed, o.content,
  (SELECT p.url FROM outcome p WHERE p.shard = ANY (%(all)s::smallint[]) AND p.id = o.parent),
  (SELECT c.url FROM outcome c WHERE c.shard = ANY (%(all)s::smallint[]) AND c.id = o.copy_of),
  (SELECT s.name FROM segment s WHERE s.id = o.segment)
FROM unnest(%(shard)s::smallint[], %(id)s::bigint[]) AS k (shard, id)
CROSS JOIN LATERAL (SELECT * FROM outcome o WHERE o.shard = k.shard AND o.id = k.id LIMIT 1) AS o;

-- name: urls_of
-- Addresses of URLs with an outcome.
SELECT o.id, o.url FROM outcome o WHERE o.shard = ANY (%(all)s::smallint[]) AND o.id = ANY (%(id)s::bigint[]);

-- name: refused
-- Numbers of a host's URLs that were skipped for a reason.
SELECT o.id FROM outcome o WHERE o.state = 5 AND o.hid = %(hid)s AND o.reason = %(reason)s AND o.id > %(after)s
ORDER BY o.id LIMIT %(limit)s;

-- name: stored
-- Hosts and numbers of URLs that were stored but not processed.
SELECT o.hid, o.id FROM outcome o WHERE o.state = 2 AND o.id > %(after)s ORDER BY o.id LIMIT %(limit)s;

-- name: dead_letters
-- Dead letters in order of their numbers.
SELECT
  o.id, o.url, h.name, o.reason, o.status, o.detail, o.attempts, o.depth,
  (SELECT p.url FROM outcome p WHERE p.shard = ANY (%(all)s::smallint[]) AND p.id = o.parent), o.found_at, o.at, o.history
FROM (SELECT * FROM outcome o WHERE o.state = 6 AND o.id > %(after)s ORDER BY o.id LIMIT %(limit)s) AS o
JOIN host h ON h.shard = o.shard AND h.hid = o.hid
ORDER BY o.id;

-- name: hosts
-- Hosts by name.
SELECT
  name, n_queued - n_leased + n_delayed, n_leased, fetched, done, dead, parked,
  discovered, duplicates, alarm, address, pace_group,
  coalesce((SELECT g.next_at FROM pace_group g WHERE g.name = host.pace_group), 0),
  coalesce((SELECT c.exact FROM host_content c WHERE c.hid = host.hid AND c.shard = host.shard), 0),
  coalesce((SELECT c.near FROM host_content c WHERE c.hid = host.hid AND c.shard = host.shard), 0),
  coalesce((SELECT c.links FROM host_content c WHERE c.hid = host.hid AND c.shard = host.shard), 0),
  coalesce((SELECT c.known FROM host_content c WHERE c.hid = host.hid AND c.shard = host.shard), 0),
  next_at, delay_ms, crawl_delay_ms, failures, slowed, latency_ms
FROM host WHERE met AND name > %(after)s ORDER BY name LIMIT %(limit)s;

-- name: segments
-- How far settled captures reach into the files of a worker's archive.
SELECT name, length FROM segment WHERE worker = %(worker)s;

-- name: enlist
-- The number of a worker, given when it comes for the first time.
INSERT INTO worker AS w (name) VALUES (%(name)s) ON CONFLICT (name) DO UPDATE SET name = w.name RETURNING id;
