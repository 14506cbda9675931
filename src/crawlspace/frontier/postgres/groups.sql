-- name: meet
-- Groups that are named for the first time.
INSERT INTO pace_group (name, next_at, wanted) SELECT k.name, 0, false FROM unnest(%(name)s::text[]) AS k (name)
ON CONFLICT DO NOTHING;

-- name: hold
-- Hold groups in the order of the list until the transaction ends.
SELECT g.name FROM unnest(%(name)s::text[]) AS k (name)
CROSS JOIN LATERAL (SELECT * FROM pace_group g WHERE g.name = k.name FOR UPDATE) AS g;

-- name: hold_free
-- Hold groups, but for those that somebody else holds.
SELECT g.name, g.next_at FROM unnest(%(name)s::text[]) AS k (name)
CROSS JOIN LATERAL (SELECT * FROM pace_group g WHERE g.name = k.name FOR UPDATE SKIP LOCKED) AS g;

-- name: leased
-- How many hosts of groups are leased, and whether some of them by others. A statement of its own, behind the one that
-- holds the groups: it sees what those did who held them before.
SELECT h.pace_group, count(*)::integer, bool_or(h.worker IS DISTINCT FROM %(worker)s)
FROM unnest(%(name)s::text[]) AS k (name)
CROSS JOIN LATERAL (
  SELECT h.pace_group, h.worker FROM host h
  WHERE h.pace_group = k.name AND h.token IS NOT NULL AND h.pace_group IS NOT NULL OFFSET 0
) AS h
GROUP BY h.pace_group;

-- name: park
-- Hosts that may be visited wait for their groups.
UPDATE host h SET parked = 'group', pace_group = k.name
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[], %(name)s::text[]) AS k (shard, hid, name)
WHERE h.shard = k.shard AND h.hid = k.hid;

-- name: want
-- Whether somebody is to be called when the time of groups has come.
UPDATE pace_group g SET wanted = k.wanted
FROM unnest(%(name)s::text[], %(wanted)s::boolean[]) AS k (name, wanted)
WHERE g.name = k.name;

-- name: of_hosts
-- The groups whose turns leased hosts have.
SELECT h.hid, h.pace_group
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[]) AS k (shard, hid)
CROSS JOIN LATERAL (SELECT * FROM host h WHERE h.shard = k.shard AND h.hid = k.hid LIMIT 1) AS h
WHERE h.token IS NOT NULL AND h.pace_group IS NOT NULL;

-- name: give_back
-- Turns of groups come back. The next requests to them wait until these times.
UPDATE pace_group g SET next_at = greatest(g.next_at, k.next_at), wanted = true
FROM unnest(%(name)s::text[], %(next_at)s::bigint[]) AS k (name, next_at)
WHERE g.name = k.name;

-- name: due
-- Groups whose time has come, to which a turn came back, and of which nobody but this worker leases a host.
SELECT g.name FROM pace_group g
WHERE g.wanted AND g.next_at <= %(now)s AND NOT EXISTS (
  SELECT FROM host h
  WHERE h.pace_group = g.name AND h.token IS NOT NULL AND h.pace_group IS NOT NULL
    AND h.worker IS DISTINCT FROM %(worker)s
)
ORDER BY g.next_at LIMIT %(limit)s;

-- name: call
-- Hold those that wait longest for their groups, so many of each, but for those that somebody else holds.
SELECT h.hid, h.pace_group FROM unnest(%(name)s::text[], %(most)s::integer[]) AS k (name, most)
CROSS JOIN LATERAL (
  SELECT * FROM host h WHERE h.parked = 'group' AND h.pace_group = k.name
  ORDER BY h.next_at LIMIT k.most FOR UPDATE SKIP LOCKED
) AS h;

-- name: left
-- Those of the groups that somebody still waits for.
SELECT k.name FROM unnest(%(name)s::text[]) AS k (name)
WHERE EXISTS (SELECT FROM host h WHERE h.parked = 'group' AND h.pace_group = k.name);

-- name: clamp
-- No group waits beyond the bound: a clock that was set back must not silence it.
UPDATE pace_group g SET next_at = %(bound)s
FROM (
  SELECT g.name FROM pace_group g WHERE g.wanted AND g.next_at > %(bound)s ORDER BY g.name FOR UPDATE SKIP LOCKED
) AS k
WHERE g.name = k.name;

-- name: turns
-- How many hosts of each pace group are visited.
SELECT pace_group, count(*) FROM host WHERE pace_group IS NOT NULL AND token IS NOT NULL GROUP BY pace_group;
