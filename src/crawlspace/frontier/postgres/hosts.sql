-- name: meet
-- Hosts that are named for the first time.
INSERT INTO host (shard, hid, name)
SELECT * FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[], %(name)s::text[])
ON CONFLICT DO NOTHING;

-- name: hold
-- Hold hosts in the order of the list until the transaction ends, and see what they are now.
SELECT h.hid, h.seed, h.met, h.n_queued, h.n_leased, h.n_delayed, h.token, h.released, h.held IS NOT DISTINCT FROM 'blocked',
  h.parked IS NOT DISTINCT FROM 'address_hosts', h.name
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[]) AS k (shard, hid)
CROSS JOIN LATERAL (SELECT * FROM host h WHERE h.shard = k.shard AND h.hid = k.hid FOR UPDATE) AS h;

-- name: held
-- What live leases were given.
SELECT l.token, l.classes, l.ids
FROM unnest(%(shard)s::smallint[], %(token)s::bigint[]) AS k (shard, token)
CROSS JOIN LATERAL (SELECT * FROM lease l WHERE l.shard = k.shard AND l.token = k.token LIMIT 1) AS l;

-- name: drop_leases
-- Leases are over.
DELETE FROM lease l USING unnest(%(shard)s::smallint[], %(token)s::bigint[]) AS k (shard, token)
WHERE l.shard = k.shard AND l.token = k.token;
