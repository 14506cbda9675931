-- name: meet
-- Domains and addresses that are named for the first time.
INSERT INTO crowd (name, hosts, refused) SELECT k.name, 0, 0 FROM unnest(%(name)s::text[]) AS k (name)
ON CONFLICT DO NOTHING;

-- name: hold
-- Hold them in the order of the list until the transaction ends, and see how many hosts they have.
SELECT c.name, c.hosts, c.refused FROM unnest(%(name)s::text[]) AS k (name)
CROSS JOIN LATERAL (SELECT * FROM crowd c WHERE c.name = k.name FOR UPDATE) AS c;

-- name: look
-- How many hosts they have, without holding them.
SELECT c.name, c.hosts, c.refused FROM unnest(%(name)s::text[]) AS k (name)
CROSS JOIN LATERAL (SELECT * FROM crowd c WHERE c.name = k.name LIMIT 1) AS c;

-- name: known
-- Those of the hosts that are known.
SELECT h.hid FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[]) AS k (shard, hid)
CROSS JOIN LATERAL (SELECT h.hid FROM host h WHERE h.shard = k.shard AND h.hid = k.hid LIMIT 1) AS h;

-- name: grow
-- So many hosts more.
UPDATE crowd c SET hosts = c.hosts + k.hosts, refused = c.refused + k.refused
FROM unnest(%(name)s::text[], %(hosts)s::bigint[], %(refused)s::bigint[]) AS k (name, hosts, refused)
WHERE c.name = k.name;

-- name: counted_only
-- Refusals that are only counted, of hosts that nobody knows.
INSERT INTO refusal AS r (shard, hid, reason, kept, beyond) VALUES (0, 0, %(reason)s, 0, %(n)s)
ON CONFLICT (shard, hid, reason) DO UPDATE SET beyond = r.beyond + excluded.beyond;

-- name: newcomers
-- Those of the hosts whose address is not known yet, and whether they are seeds'.
SELECT h.hid, h.seed FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[]) AS k (shard, hid)
CROSS JOIN LATERAL (SELECT * FROM host h WHERE h.shard = k.shard AND h.hid = k.hid LIMIT 1) AS h
WHERE h.address IS NULL;

-- name: park
-- Free hosts rest, since too many have their address.
UPDATE host h SET parked = 'address_hosts'
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[]) AS k (shard, hid)
WHERE h.shard = k.shard AND h.hid = k.hid AND h.parked IS NULL;

-- name: crowded
-- Hold hosts that rest so, by address and number, from the first behind a place.
SELECT h.address, h.hid FROM host h WHERE h.parked = 'address_hosts' AND (h.address, h.hid) > (%(address)s, %(hid)s)
ORDER BY h.address, h.hid LIMIT %(limit)s FOR UPDATE SKIP LOCKED;
