-- name: leased
-- Rows of the queue by their places.
WITH asked (hid, class, id) AS (VALUES (?*3))
SELECT
  q.hid, q.class, q.id, q.tail, q.url, q.depth, q.hops, q.attempts, q.parent, q.relation, q.found_at, q.suspect, q.label,
  q.meta, q.request, q.history, q.generation, q.settled, q.route
FROM asked CROSS JOIN queue q ON q.hid = asked.hid AND q.class = asked.class AND q.id = asked.id;

-- name: had
-- The URLs that had these bytes first.
SELECT digest, id FROM content WHERE digest IN (?*);

-- name: first
-- These bytes belong to this URL from now on.
INSERT INTO content (digest, id) VALUES (?, ?);
