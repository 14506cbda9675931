-- name: host_delta
-- Move counters of hosts; a host rests when its budget is spent. What no host moves comes as no list at all.
UPDATE host h SET
  seed = h.seed OR d.seed,
  met = h.met OR d.met,
  class = CASE WHEN h.n_queued > 0 THEN least(h.class, d.class) ELSE d.class END,
  n_queued = h.n_queued + d.queued,
  n_leased = h.n_leased + d.leased,
  n_delayed = h.n_delayed + d.delayed,
  fetched = h.fetched + d.fetched,
  done = h.done + d.done,
  dead = h.dead + d.dead,
  discovered = h.discovered + d.discovered,
  duplicates = h.duplicates + d.duplicates,
  parked = CASE
    WHEN h.parked IS NULL
      AND h.fetched + d.fetched >= CASE WHEN h.seed OR d.seed THEN %(seed_pages)s::bigint ELSE %(pages)s::bigint END
    THEN 'host_budget' ELSE h.parked END,
  spent = CASE
    WHEN h.parked IS NOT NULL
      OR h.fetched + d.fetched >= CASE WHEN h.seed OR d.seed THEN %(seed_pages)s::bigint ELSE %(pages)s::bigint END
    THEN h.fetched + d.fetched END
FROM (
  SELECT
    shard, hid, class, coalesce(seed, false) AS seed, coalesce(met, false) AS met, coalesce(queued, 0) AS queued,
    coalesce(leased, 0) AS leased, coalesce(delayed, 0) AS delayed, coalesce(fetched, 0) AS fetched,
    coalesce(done, 0) AS done, coalesce(dead, 0) AS dead, coalesce(discovered, 0) AS discovered,
    coalesce(duplicates, 0) AS duplicates
  FROM unnest(
    %(shards)s::smallint[], %(hids)s::bigint[], %(seed)s::boolean[], %(met)s::boolean[], %(classes)s::smallint[],
    %(queued)s::integer[], %(leased)s::integer[], %(delayed)s::integer[], %(fetched)s::integer[], %(done)s::integer[],
    %(dead)s::integer[], %(discovered)s::integer[], %(duplicates)s::integer[]
  ) AS k (shard, hid, seed, met, class, queued, leased, delayed, fetched, done, dead, discovered, duplicates)
) AS d
WHERE h.shard = d.shard AND h.hid = d.hid;

-- name: tally_delta
-- Move totals.
UPDATE tally SET
  queued = queued + %(queued)s, leased = leased + %(leased)s, stored = stored + %(stored)s, done = done + %(done)s,
  redirected = redirected + %(redirected)s, skipped = skipped + %(skipped)s, dead = dead + %(dead)s,
  pages = pages + %(pages)s, fetches = fetches + %(fetches)s, bytes = bytes + %(bytes)s,
  duplicates = duplicates + %(duplicates)s, hosts = hosts + %(hosts)s,
  refused_beyond_cap = refused_beyond_cap + %(refused_beyond_cap)s
WHERE slot = %(slot)s;
