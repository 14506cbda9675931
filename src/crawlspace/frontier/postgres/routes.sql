-- name: used
-- What one batch of settlements has moved.
INSERT INTO route (name, worker, requests, pages, blocked, bytes)
SELECT k.name, %(worker)s, k.requests, k.pages, k.blocked, k.bytes
FROM unnest(%(name)s::text[], %(requests)s::bigint[], %(pages)s::bigint[], %(blocked)s::bigint[], %(bytes)s::bigint[])
  AS k (name, requests, pages, blocked, bytes)
ON CONFLICT (name, worker) DO UPDATE SET
  requests = route.requests + excluded.requests, pages = route.pages + excluded.pages,
  blocked = route.blocked + excluded.blocked, bytes = route.bytes + excluded.bytes;

-- name: take
-- One request more, if the budget has it.
INSERT INTO route_budget AS b (name, taken) SELECT %(name)s, 1 WHERE %(most)s > 0
ON CONFLICT (name) DO UPDATE SET taken = b.taken + 1 WHERE b.taken < %(most)s
RETURNING taken;

-- name: give_back
-- It was not made after all.
UPDATE route_budget SET taken = taken - 1 WHERE name = %(name)s AND taken > 0;

-- name: figures
-- All routes in numbers.
SELECT name, coalesce(max(b.taken), 0), coalesce(sum(r.requests), 0)::bigint, coalesce(sum(r.pages), 0)::bigint,
  coalesce(sum(r.blocked), 0)::bigint, coalesce(sum(r.bytes), 0)::bigint
FROM route r FULL JOIN route_budget b USING (name) GROUP BY name ORDER BY name;
