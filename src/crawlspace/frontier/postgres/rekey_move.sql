-- name: hosts
-- Those of the hosts that are there: number, name, and whether each was ever met.
SELECT h.hid, h.name, h.met FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[]) AS k (shard, hid)
CROSS JOIN LATERAL (SELECT * FROM host h WHERE h.shard = k.shard AND h.hid = k.hid LIMIT 1) AS h;

-- name: add_hosts
-- Hosts that are named for the first time.
INSERT INTO host (shard, hid, name, seed)
SELECT * FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[], %(name)s::text[], %(seed)s::boolean[])
ON CONFLICT DO NOTHING;

-- name: slow_hosts
-- Hosts that get URLs of others are asked no faster and no sooner than those, and held where one of those is.
UPDATE host h SET
  next_at = greatest(h.next_at, o.next_at),
  delay_ms = greatest(h.delay_ms, o.delay_ms),
  crawl_delay_ms = greatest(h.crawl_delay_ms, o.crawl_delay_ms),
  failures = greatest(h.failures, o.failures),
  slowed = greatest(h.slowed, o.slowed),
  latency_ms = greatest(h.latency_ms, o.latency_ms),
  alarm = coalesce(h.alarm, o.alarm),
  held = CASE WHEN h.held = 'blocked' OR o.blocked THEN 'blocked' ELSE coalesce(h.held, o.held) END
FROM (
  SELECT
    k.new_shard, k.new, max(o.next_at) AS next_at, max(o.delay_ms) AS delay_ms,
    max(o.crawl_delay_ms) AS crawl_delay_ms, max(o.failures) AS failures, max(o.slowed) AS slowed,
    max(o.latency_ms) AS latency_ms, min(o.alarm) AS alarm, max(o.held) AS held,
    coalesce(bool_or(o.held = 'blocked'), false) AS blocked
  FROM unnest(%(old_shard)s::smallint[], %(old)s::bigint[], %(new_shard)s::smallint[], %(new)s::bigint[])
    AS k (old_shard, old, new_shard, new)
  JOIN host o ON o.shard = k.old_shard AND o.hid = k.old
  GROUP BY k.new_shard, k.new
) AS o
WHERE h.shard = o.new_shard AND h.hid = o.new;

-- name: hold_hosts
-- Hosts that are held rest, unless they rest for a reason of their own.
UPDATE host h SET
  parked = CASE WHEN h.parked IN ('host_budget', 'condemned') THEN h.parked ELSE h.held END
FROM unnest(%(new_shard)s::smallint[], %(new)s::bigint[]) AS k (shard, hid)
WHERE h.shard = k.shard AND h.hid = k.hid AND h.held IS NOT NULL;

-- name: outcome_urls
-- Addresses and requests of URLs with an outcome.
SELECT o.id, o.url, o.request FROM unnest(%(shard)s::smallint[], %(id)s::bigint[]) AS k (shard, id)
CROSS JOIN LATERAL (SELECT * FROM outcome o WHERE o.shard = k.shard AND o.id = k.id LIMIT 1) AS o;

-- name: merged_urls
-- The same of URLs that were merged.
SELECT m.id, m.url, m.request FROM merged m WHERE m.id = ANY (%(id)s::bigint[]);

-- name: outcome_facts
-- What the counters must know of outcomes.
SELECT o.id, o.state, o.reason, o.token, o.attempts, o.status, o.copy_of IS NOT NULL
FROM unnest(%(shard)s::smallint[], %(id)s::bigint[]) AS k (shard, id)
CROSS JOIN LATERAL (SELECT * FROM outcome o WHERE o.shard = k.shard AND o.id = k.id LIMIT 1) AS o;

-- name: merged_facts
-- The same of URLs that were merged, then where their requests count, their due time, who stood for them, and their bytes.
SELECT m.id, m.state, m.reason, m.token, m.attempts, m.status, m.copy_of IS NOT NULL, m.hid, m.due_at, m.winner, m.digest
FROM merged m WHERE m.id = ANY (%(id)s::bigint[]);

-- name: forget_keys
-- URLs give up their keys, unless others have them by now.
DELETE FROM seen s USING unnest(%(shard)s::smallint[], %(fp)s::uuid[], %(id)s::bigint[]) AS k (shard, fp, id)
WHERE s.shard = k.shard AND s.fp = k.fp AND s.id = k.id;

-- name: take_keys
-- URLs take their new keys, also from those that will give them up later.
INSERT INTO seen (shard, fp, id)
SELECT * FROM unnest(%(shard)s::smallint[], %(fp)s::uuid[], %(id)s::bigint[])
ON CONFLICT (shard, fp) DO UPDATE SET id = excluded.id;

-- name: move_outcomes
-- Outcomes under their new keys.
UPDATE outcome o SET shard = k.new_shard, hid = k.new_hid, tail = k.tail
FROM unnest(%(shard)s::smallint[], %(id)s::bigint[], %(new_shard)s::smallint[], %(new_hid)s::bigint[], %(tail)s::bytea[])
  AS k (shard, id, new_shard, new_hid, tail)
WHERE o.shard = k.shard AND o.id = k.id;

-- name: move_visits
-- Earlier visits lie in the shard of their URL.
UPDATE visit v SET shard = k.new_shard
FROM unnest(%(shard)s::smallint[], %(id)s::bigint[], %(new_shard)s::smallint[]) AS k (shard, id, new_shard)
WHERE v.shard = k.shard AND v.id = k.id;

-- name: move_declared
-- So does what pages declare.
UPDATE declared d SET shard = k.new_shard
FROM unnest(%(shard)s::smallint[], %(id)s::bigint[], %(new_shard)s::smallint[]) AS k (shard, id, new_shard)
WHERE d.shard = k.shard AND d.id = k.id;

-- name: move_pages
-- And what is said of their content names it.
UPDATE page p SET shard = k.new_shard
FROM unnest(%(shard)s::smallint[], %(id)s::bigint[], %(new_shard)s::smallint[]) AS k (shard, id, new_shard)
WHERE p.id = k.id AND p.shard = k.shard;

-- name: bury_outcomes
-- Keep outcomes that give way.
INSERT INTO merged (
  id, winner, rules, hid, class, url, depth, hops, attempts, parent, relation, found_at, label, meta, request, history,
  generation, route, suspect, state, at, token, reason, detail, requested_at, status, elapsed_ms, segment, "offset", length,
  digest, mime, size, etag, last_modified, target, copy_of, next_visit, interval_ms, changed, content
)
SELECT
  o.id, k.winner, %(rules)s, k.hid, o.class, o.url, o.depth, o.hops, o.attempts, o.parent, o.relation, o.found_at, o.label,
  o.meta, o.request, o.history, o.generation, o.route, 0, o.state, o.at, o.token, o.reason, o.detail, o.requested_at,
  o.status, o.elapsed_ms, o.segment, o."offset", o.length, o.digest, o.mime, o.size, o.etag, o.last_modified, o.target,
  o.copy_of, o.next_visit, o.interval_ms, o.changed, o.content
FROM unnest(%(shard)s::smallint[], %(id)s::bigint[], %(winner)s::bigint[], %(hid)s::bigint[]) AS k (shard, id, winner, hid)
CROSS JOIN LATERAL (SELECT * FROM outcome o WHERE o.shard = k.shard AND o.id = k.id LIMIT 1) AS o;

-- name: forget_outcomes
-- Outcomes are gone from their table.
DELETE FROM outcome o USING unnest(%(shard)s::smallint[], %(id)s::bigint[]) AS k (shard, id)
WHERE o.shard = k.shard AND o.id = k.id;

-- name: forget_visits
-- Earlier visits of URLs that are one with another now.
DELETE FROM visit v USING unnest(%(shard)s::smallint[], %(id)s::bigint[]) AS k (shard, id)
WHERE v.shard = k.shard AND v.id = k.id;

-- name: bury_waiting
-- Keep waiting URLs that give way.
INSERT INTO merged (
  id, winner, rules, hid, class, url, depth, hops, attempts, parent, relation, found_at, label, meta, request, history,
  generation, route, due_at, suspect, state
)
SELECT k.*, 0 FROM unnest(
  %(id)s::bigint[], %(winner)s::bigint[], %(rules)s::text[], %(hid)s::bigint[], %(class)s::smallint[], %(url)s::text[],
  %(depth)s::integer[], %(hops)s::integer[], %(attempts)s::integer[], %(parent)s::bigint[], %(relation)s::text[],
  %(found_at)s::bigint[], %(label)s::text[], %(meta)s::text[], %(request)s::bytea[], %(history)s::text[],
  %(generation)s::integer[], %(route)s::text[], %(due_at)s::bigint[], %(suspect)s::integer[]
) AS k;

-- name: redirect_merged
-- URLs that were merged before belong to others now.
UPDATE merged m SET winner = k.winner, hid = k.hid
FROM unnest(%(id)s::bigint[], %(winner)s::bigint[], %(hid)s::bigint[]) AS k (id, winner, hid) WHERE m.id = k.id;

-- name: restore_outcomes
-- Outcomes come back.
INSERT INTO outcome (
  shard, hid, tail, id, class, url, depth, hops, attempts, parent, relation, found_at, label, meta, request, history,
  generation, route, state, at, token, reason, detail, requested_at, status, elapsed_ms, segment, "offset", length,
  digest, mime, size, etag, last_modified, target, copy_of, next_visit, interval_ms, changed, content
)
SELECT
  k.shard, k.hid, k.tail, m.id, m.class, m.url, m.depth, m.hops, m.attempts, m.parent, m.relation, m.found_at, m.label,
  m.meta, m.request, m.history, m.generation, m.route, m.state, m.at, m.token, m.reason, m.detail, m.requested_at,
  m.status, m.elapsed_ms, m.segment, m."offset", m.length, m.digest, m.mime, m.size, m.etag, m.last_modified, m.target,
  m.copy_of, m.next_visit, m.interval_ms, m.changed, m.content
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[], %(tail)s::bytea[], %(id)s::bigint[]) AS k (shard, hid, tail, id)
JOIN merged m ON m.id = k.id;

-- name: restore_waiting
-- Waiting URLs that come back, as rows of the queue but for host and key.
SELECT
  0, m.class, m.id, ''::bytea, m.url, m.depth, m.hops, m.attempts, m.parent, m.relation, m.found_at, m.suspect, m.label,
  m.meta, m.request, m.history, m.generation, NULL::bigint, m.route
FROM merged m WHERE m.id = ANY (%(id)s::bigint[]);

-- name: forget_merged
-- URLs are merged no longer.
DELETE FROM merged m WHERE m.id = ANY (%(id)s::bigint[]);

-- name: regain_content
-- Bytes that only these URLs had belong to them again.
UPDATE content c SET id = k.id
FROM unnest(%(shard)s::smallint[], %(digest)s::uuid[], %(id)s::bigint[], %(winner)s::bigint[]) AS k (shard, digest, id, winner)
WHERE c.shard = k.shard AND c.digest = k.digest AND c.id = k.winner AND NOT EXISTS (
  SELECT FROM outcome o WHERE o.shard = ANY (%(all)s::smallint[]) AND o.id = k.winner
    AND encode(substr(o.digest, 1, 16), 'hex') = replace(k.digest::text, '-', '')
);

-- name: more_refusals
-- Kept refusals of hosts come.
INSERT INTO refusal AS r (shard, hid, reason, kept, beyond)
SELECT k.*, 0 FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[], %(reason)s::text[], %(n)s::bigint[]) AS k
ON CONFLICT (shard, hid, reason) DO UPDATE SET kept = r.kept + excluded.kept;

-- name: fewer_refusals
-- And go.
UPDATE refusal r SET kept = r.kept - k.n
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[], %(reason)s::text[], %(n)s::bigint[]) AS k (shard, hid, reason, n)
WHERE r.shard = k.shard AND r.hid = k.hid AND r.reason = k.reason;

-- name: reclass
-- The classes of hosts that have lost or won URLs.
UPDATE host h SET class = coalesce((
  SELECT q.class FROM queue q WHERE q.shard = h.shard AND q.hid = h.hid ORDER BY q.class, q.id LIMIT 1
), h.class)
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[]) AS k (shard, hid)
WHERE h.shard = k.shard AND h.hid = k.hid;
