-- name: places
-- Keys that are not in exactly one place under their own number.
SELECT s.id, count(p.id) FROM seen s LEFT JOIN (
  SELECT shard, hid, id, tail FROM queue
  UNION ALL SELECT shard, hid, id, tail FROM delayed
  UNION ALL SELECT shard, hid, id, tail FROM outcome
) AS p ON p.shard = s.shard AND p.id = s.id
  AND lpad(to_hex(p.hid), 12, '0') || encode(p.tail, 'hex') = replace(s.fp::text, '-', '')
GROUP BY s.id HAVING count(p.id) <> 1;

-- name: strays
-- URLs in some place whose number no key has.
SELECT p.id FROM (SELECT id FROM queue UNION ALL SELECT id FROM delayed UNION ALL SELECT id FROM outcome) AS p
EXCEPT SELECT s.id FROM seen s;

-- name: totals
-- Totals that are not what the rows say: name, kept, counted.
WITH leased AS (
  SELECT count(*) AS n FROM lease l CROSS JOIN LATERAL unnest(l.classes, l.ids) AS u (class, id)
  JOIN queue q ON q.shard = l.shard AND q.hid = l.hid AND q.class = u.class AND q.id = u.id
  WHERE q.settled IS DISTINCT FROM l.token
), waiting AS (
  SELECT (SELECT count(*) FROM queue) + (SELECT count(*) FROM delayed) AS n
), ended AS (
  SELECT
    count(*) FILTER (WHERE state = 2) AS stored, count(*) FILTER (WHERE state = 3) AS done,
    count(*) FILTER (WHERE state = 4) AS redirected, count(*) FILTER (WHERE state = 5) AS skipped,
    count(*) FILTER (WHERE state = 6) AS dead, count(copy_of) AS duplicates
  FROM outcome
), kept AS (
  SELECT
    sum(queued) AS queued, sum(leased) AS leased, sum(stored) AS stored, sum(done) AS done,
    sum(redirected) AS redirected, sum(skipped) AS skipped, sum(dead) AS dead, sum(duplicates) AS duplicates,
    sum(hosts) AS hosts, sum(fetches) AS fetches, sum(refused_beyond_cap) AS beyond
  FROM tally
)
SELECT c.name, c.kept, c.counted FROM kept, leased, waiting, ended, LATERAL (VALUES
  ('queued', kept.queued, waiting.n - leased.n), ('leased', kept.leased, leased.n),
  ('stored', kept.stored, ended.stored), ('done', kept.done, ended.done),
  ('redirected', kept.redirected, ended.redirected), ('skipped', kept.skipped, ended.skipped),
  ('dead', kept.dead, ended.dead), ('duplicates', kept.duplicates, ended.duplicates),
  ('hosts', kept.hosts, (SELECT count(*) FROM host WHERE met)),
  ('fetches', kept.fetches, (SELECT coalesce(sum(fetched), 0) FROM host)),
  ('refused_beyond_cap', kept.beyond, (SELECT coalesce(sum(beyond), 0) FROM refusal))
) AS c (name, kept, counted)
WHERE c.kept <> c.counted;

-- name: rounds
-- Counts of ended visits that are not what the rows say: generation, state, change, kept, counted.
SELECT
  coalesce(k.generation, c.generation), coalesce(k.state, c.state), coalesce(k.changed, c.changed),
  k.present, c.present, k.past, c.past
FROM (
  SELECT generation, state, changed, sum(present) AS present, sum(past) AS past FROM round GROUP BY 1, 2, 3
) AS k FULL JOIN (
  SELECT generation, state, changed, sum(present) AS present, sum(past) AS past FROM (
    SELECT generation, state, coalesce(changed, -1) AS changed, 1 AS present, 0 AS past FROM outcome WHERE generation > 0
    UNION ALL SELECT generation, state, coalesce(changed, -1), 0, 1 FROM visit
  ) AS rows GROUP BY 1, 2, 3
) AS c USING (generation, state, changed)
WHERE coalesce(k.present, 0) <> coalesce(c.present, 0) OR coalesce(k.past, 0) <> coalesce(c.past, 0);

-- name: hosts
-- Hosts whose counters, class or shard are not what their rows say.
SELECT h.name, h.n_queued, q.n, h.n_leased, l.n, h.n_delayed, d.n, h.done, o.done, h.dead, o.dead, h.class, q.best
FROM host h
CROSS JOIN LATERAL (
  SELECT count(*) AS n, min(q.class) AS best FROM queue q WHERE q.shard = h.shard AND q.hid = h.hid
) AS q
CROSS JOIN LATERAL (SELECT count(*) AS n FROM delayed d WHERE d.shard = h.shard AND d.hid = h.hid) AS d
CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE state = 3) AS done, count(*) FILTER (WHERE state = 6) AS dead
  FROM outcome o WHERE o.shard = h.shard AND o.hid = h.hid
) AS o
CROSS JOIN LATERAL (
  SELECT count(*) AS n FROM lease l CROSS JOIN LATERAL unnest(l.classes, l.ids) AS u (class, id)
  JOIN queue q ON q.shard = l.shard AND q.hid = l.hid AND q.class = u.class AND q.id = u.id
  WHERE l.shard = h.shard AND l.token = h.token AND q.settled IS DISTINCT FROM l.token
) AS l
WHERE h.n_queued <> q.n OR h.n_leased <> l.n OR h.n_delayed <> d.n OR h.done <> o.done OR h.dead <> o.dead
  OR (h.token IS NULL AND h.class <> q.best) OR h.shard <> h.hid >> %(shift)s::integer
  OR (h.parked = 'host_budget' AND h.spent IS NULL);

-- name: leases
-- Leases without their host, and leased hosts without their lease.
SELECT coalesce(l.token, h.token) FROM lease l
FULL JOIN (SELECT * FROM host WHERE token IS NOT NULL) AS h
  ON h.shard = l.shard AND h.hid = l.hid AND h.token = l.token
WHERE l.token IS NULL OR h.token IS NULL;

-- name: groups
-- Pace groups for which hosts wait although nobody has a turn and nobody will be called.
SELECT DISTINCT h.pace_group FROM host h LEFT JOIN pace_group g ON g.name = h.pace_group
WHERE h.parked = 'group' AND g.wanted IS NOT TRUE
  AND NOT EXISTS (SELECT FROM host o WHERE o.pace_group = h.pace_group AND o.token IS NOT NULL);

-- name: refusals
-- Hosts and reasons with another number of kept refusals than is written down.
SELECT coalesce(r.hid, o.hid), coalesce(r.reason, o.reason), r.kept, o.n
FROM (SELECT * FROM refusal WHERE kept > 0) AS r
FULL JOIN (SELECT hid, reason, count(*) AS n FROM outcome WHERE state = 5 GROUP BY hid, reason) AS o
  ON o.hid = r.hid AND o.reason = r.reason
WHERE r.kept IS DISTINCT FROM o.n;
