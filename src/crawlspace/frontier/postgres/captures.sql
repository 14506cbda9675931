-- name: originals
-- Where pages with these bytes lie: the latest settled capture of the URL that had them first.
SELECT k.n, x.name, x."offset", x.length
FROM unnest(%(shard)s::smallint[], %(short)s::uuid[], %(digest)s::bytea[]) WITH ORDINALITY AS k (shard, short, digest, n)
CROSS JOIN LATERAL (
  SELECT s.name, y."offset", y.length FROM (
    SELECT o.segment, o."offset", o.length, o.at FROM content c JOIN outcome o ON o.id = c.id
    WHERE c.shard = k.shard AND c.digest = k.short
      AND o.shard = ANY (%(all)s::smallint[]) AND o.digest = k.digest AND o.state = 3
    UNION ALL
    SELECT v.segment, v."offset", v.length, v.at FROM content c JOIN visit v ON v.id = c.id
    WHERE c.shard = k.shard AND c.digest = k.short
      AND v.shard = ANY (%(all)s::smallint[]) AND v.digest = k.digest AND v.state = 3
  ) AS y JOIN segment s ON s.id = y.segment ORDER BY y.at DESC LIMIT 1
) AS x;

-- name: segments
-- Files by name, with their numbers and workers. Names have the number of their worker, so that no two are equal.
SELECT name, id, worker FROM segment WHERE name = ANY (%(name)s::text[]);

-- name: add_segment
-- An archive file that others were joined into.
INSERT INTO segment (worker, name, length) VALUES (%(worker)s, %(name)s, %(length)s)
ON CONFLICT (worker, name) DO UPDATE SET length = excluded.length RETURNING id;

-- name: move_outcomes
-- Latest captures point to where they lie now.
UPDATE outcome o SET segment = m.target, "offset" = o."offset" + m.base
FROM unnest(%(segment)s::integer[], %(target)s::integer[], %(base)s::bigint[]) AS m (segment, target, base)
WHERE o.segment = m.segment;

-- name: move_visits
-- Earlier captures too.
UPDATE visit v SET segment = m.target, "offset" = v."offset" + m.base
FROM unnest(%(segment)s::integer[], %(target)s::integer[], %(base)s::bigint[]) AS m (segment, target, base)
WHERE v.segment = m.segment;

-- name: move_merged
-- And those of URLs that became one with others.
UPDATE merged g SET segment = m.target, "offset" = g."offset" + m.base
FROM unnest(%(segment)s::integer[], %(target)s::integer[], %(base)s::bigint[]) AS m (segment, target, base)
WHERE g.segment = m.segment;

-- name: drop_segments
-- The files that are gone.
DELETE FROM segment WHERE id = ANY (%(segment)s::integer[]);
