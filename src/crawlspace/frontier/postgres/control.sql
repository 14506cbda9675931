-- name: ask
-- Commands are written down in the order of the list.
INSERT INTO control (asked_at, command)
SELECT %(now)s, k.command FROM unnest(%(command)s::text[]) WITH ORDINALITY AS k (command, n) ORDER BY k.n
RETURNING id;

-- name: forget
-- Commands that were carried out before a time.
DELETE FROM control WHERE done_at < %(before)s;

-- name: open
-- Commands that are not carried out yet, in order.
SELECT id, command, progress, false FROM control WHERE done_at IS NULL ORDER BY id LIMIT %(limit)s;

-- name: take
-- Those of them that nobody else carries out, and whoever asks has the word for a while.
UPDATE control c SET taken_by = %(worker)s, taken_until = %(until)s
FROM (
  SELECT c.id FROM control c
  WHERE c.done_at IS NULL AND (c.taken_by = %(worker)s OR c.taken_until <= %(now)s)
  ORDER BY c.id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
) AS k
WHERE c.id = k.id
RETURNING c.id, c.command, c.progress, false;

-- name: some
-- Commands, and how far they are.
SELECT c.id, c.command, c.progress, c.done_at IS NOT NULL
FROM unnest(%(id)s::bigint[]) AS k (id) CROSS JOIN LATERAL (SELECT * FROM control c WHERE c.id = k.id LIMIT 1) AS c;

-- name: progress
-- How far a command is.
UPDATE control SET progress = %(progress)s, done_at = %(done_at)s WHERE id = %(id)s;

-- name: hold
-- A person pauses or blocks hosts. One that is being emptied because it was given up goes on with that first.
UPDATE host h SET
  held = %(how)s, parked = CASE WHEN h.parked = 'condemned' THEN h.parked ELSE %(how)s END, spent = h.fetched
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[]) AS k (shard, hid)
WHERE h.shard = k.shard AND h.hid = k.hid;

-- name: free
-- And takes it back. A budget that is used up parks it again when its turn comes.
UPDATE host h SET
  held = NULL, parked = CASE WHEN h.parked NOT IN ('paused', 'blocked') THEN h.parked END,
  spent = CASE WHEN h.parked NOT IN ('paused', 'blocked') THEN h.spent END
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[]) AS k (shard, hid)
WHERE h.shard = k.shard AND h.hid = k.hid;

-- name: alarm
-- The kinds of trap that hosts' URLs look like.
UPDATE host h SET alarm = k.kind
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[], %(kind)s::text[]) AS k (shard, hid, kind)
WHERE h.shard = k.shard AND h.hid = k.hid;
