-- name: words
-- What workers have said of the hosts that they take.
SELECT key, value FROM meta WHERE key GLOB 'crew *';

-- name: say
-- One says it.
REPLACE INTO meta (key, value) VALUES (?, ?);

-- name: leave
-- One takes none any more.
DELETE FROM meta WHERE key = ?;

-- name: held
-- Hosts without a pace group that some of the workers hold.
SELECT count(*) FROM host
WHERE token IS NOT NULL AND pace_group IS NULL AND worker IN (SELECT value FROM json_each(?));

-- name: free
-- Free hosts whose time comes before a moment, up to a number that is enough; class by class, as their index has them.
WITH front (class) AS (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))
SELECT count(*) FROM (
  SELECT 1 FROM front CROSS JOIN host h
  WHERE h.class = front.class AND h.ready AND h.token IS NULL AND h.next_at <= ? LIMIT ?
);
