-- name: dead
-- The hosts of those of the URLs that are dead.
SELECT o.hid, o.id FROM unnest(%(id)s::bigint[]) AS k (id)
CROSS JOIN LATERAL (SELECT * FROM outcome o WHERE o.state = 6 AND o.id = k.id LIMIT 1) AS o;
