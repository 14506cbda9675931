-- name: totals
-- Every total, recounted from rows; bytes and requests of the whole crawl are kept nowhere else.
SELECT 'queued', (SELECT count(*) FROM queue) + (SELECT count(*) FROM delayed) - (SELECT sum(n_leased) FROM host)
UNION ALL SELECT 'leased', (SELECT coalesce(sum(n_leased), 0) FROM host)
UNION ALL SELECT 'stored', (SELECT count(*) FROM outcome WHERE state = 2)
UNION ALL SELECT 'done', (SELECT count(*) FROM outcome WHERE state = 3)
UNION ALL SELECT 'redirected', (SELECT count(*) FROM outcome WHERE state = 4)
UNION ALL SELECT 'skipped', (SELECT count(*) FROM outcome WHERE state = 5)
UNION ALL SELECT 'dead', (SELECT count(*) FROM outcome WHERE state = 6)
UNION ALL SELECT 'pages', (SELECT count(*) FROM outcome WHERE state = 3 AND status BETWEEN 200 AND 299)
UNION ALL SELECT 'duplicates', (SELECT count(copy_of) FROM outcome)
UNION ALL SELECT 'hosts', (SELECT count(*) FROM host WHERE met)
UNION ALL SELECT 'refused_beyond_cap', (SELECT coalesce(sum(beyond), 0) FROM refusal);

-- name: kept_totals
-- Every total, as it is kept.
SELECT name, n FROM tally;

-- name: hosts
-- Counters of hosts that are not what their rows say: name, then kept and counted for each.
SELECT
  h.hid, h.name, h.n_queued, coalesce(q.n, 0), h.n_delayed, coalesce(d.n, 0), h.n_leased, coalesce(l.n, 0),
  h.done, coalesce(o.done, 0), h.dead, coalesce(o.dead, 0), h.duplicates, coalesce(o.copies, 0),
  h.ready, coalesce(q.n, 0) > 0 AND h.parked IS NULL,
  h.class, CASE WHEN h.token IS NULL THEN coalesce(q.best, h.class) ELSE h.class END
FROM host h
LEFT JOIN (SELECT hid, count(*) AS n, min(class) AS best FROM queue GROUP BY hid) q ON q.hid = h.hid
LEFT JOIN (SELECT hid, count(*) AS n FROM delayed GROUP BY hid) d ON d.hid = h.hid
LEFT JOIN (
  SELECT l.hid, count(*) AS n FROM lease l, json_each(l.urls) u
  JOIN queue w ON w.hid = l.hid AND w.class = u.value ->> 0 AND w.id = u.value ->> 1
  WHERE w.settled IS NOT l.token GROUP BY l.hid
) l ON l.hid = h.hid
LEFT JOIN (
  SELECT hid, sum(state = 3) AS done, sum(state = 6) AS dead, count(copy_of) AS copies FROM outcome GROUP BY hid
) o ON o.hid = h.hid
WHERE h.n_queued <> coalesce(q.n, 0) OR h.n_delayed <> coalesce(d.n, 0) OR h.n_leased <> coalesce(l.n, 0)
  OR h.done <> coalesce(o.done, 0) OR h.dead <> coalesce(o.dead, 0) OR h.duplicates <> coalesce(o.copies, 0)
  OR h.ready <> (coalesce(q.n, 0) > 0 AND h.parked IS NULL)
  OR (h.token IS NULL AND q.best IS NOT NULL AND h.class <> q.best);

-- name: rounds
-- How many counts of ended visits are not what the rows say.
WITH counted AS (
  SELECT generation, state, changed, sum(present) AS present, sum(past) AS past FROM (
    SELECT generation, state, coalesce(changed, -1) AS changed, 1 AS present, 0 AS past FROM outcome WHERE generation > 0
    UNION ALL SELECT generation, state, coalesce(changed, -1), 0, 1 FROM visit
  ) GROUP BY generation, state, changed
), kept AS (
  SELECT generation, state, changed, present, past FROM round WHERE present > 0 OR past > 0
)
SELECT count(*) FROM (
  SELECT * FROM (SELECT * FROM counted EXCEPT SELECT * FROM kept)
  UNION ALL SELECT * FROM (SELECT * FROM kept EXCEPT SELECT * FROM counted)
);

-- name: clear_rounds
-- Forget how many visits ended how, to count them anew.
DELETE FROM round;

-- name: mend_rounds
-- Count how visits ended.
INSERT INTO round (generation, state, changed, present, past)
SELECT generation, state, changed, sum(present), sum(past) FROM (
  SELECT generation, state, coalesce(changed, -1) AS changed, 1 AS present, 0 AS past FROM outcome WHERE generation > 0
  UNION ALL SELECT generation, state, coalesce(changed, -1), 0, 1 FROM visit
) GROUP BY generation, state, changed;

-- name: strangers
-- URLs whose host nobody knows.
SELECT count(*) FROM (
  SELECT hid FROM queue UNION ALL SELECT hid FROM delayed UNION ALL SELECT hid FROM outcome
) WHERE hid NOT IN (SELECT hid FROM host);

-- name: leases
-- Leases without their host's token, and tokens without a lease.
SELECT count(*) FROM (
  SELECT token, hid FROM lease EXCEPT SELECT token, hid FROM host WHERE token IS NOT NULL
  UNION ALL
  SELECT * FROM (SELECT token, hid FROM host WHERE token IS NOT NULL EXCEPT SELECT token, hid FROM lease)
);

-- name: refusals
-- Refusals whose number is not what their rows say: host, reason, kept and counted.
SELECT h.name, r.reason, r.kept, coalesce(o.n, 0) FROM refusal r
JOIN host h ON h.hid = r.hid
LEFT JOIN (SELECT hid, reason, count(*) AS n FROM outcome WHERE state = 5 GROUP BY hid, reason) o
  ON o.hid = r.hid AND o.reason = r.reason
WHERE r.kept <> coalesce(o.n, 0)
UNION ALL
SELECT h.name, o.reason, 0, count(*) FROM outcome o JOIN host h ON h.hid = o.hid
WHERE o.state = 5 AND NOT EXISTS (SELECT 1 FROM refusal r WHERE r.hid = o.hid AND r.reason = o.reason)
GROUP BY o.hid, o.reason;

-- name: twice
-- URLs that are in two places at once.
SELECT id FROM queue WHERE id IN (SELECT id FROM outcome) OR id IN (SELECT id FROM delayed)
UNION ALL SELECT id FROM delayed WHERE id IN (SELECT id FROM outcome)
UNION ALL SELECT id FROM queue GROUP BY id HAVING count(*) > 1
LIMIT 100;

-- name: places
-- How many URLs there are, by their places and by their keys, and the highest number of each.
SELECT
  (SELECT count(*) FROM queue) + (SELECT count(*) FROM delayed) + (SELECT count(*) FROM outcome),
  (SELECT count(*) FROM seen),
  (SELECT coalesce(max(id), 0) FROM seen),
  (SELECT last FROM serial WHERE name = 'url'),
  (SELECT coalesce(max(token), 0) FROM lease),
  (SELECT last FROM serial WHERE name = 'token');

-- name: keys_queue
-- Keys of queued URLs with their numbers.
SELECT hid, tail, id FROM queue;

-- name: keys_delayed
-- Keys of delayed URLs with their numbers.
SELECT hid, tail, id FROM delayed;

-- name: keys_outcome
-- Keys of URLs that have ended, with their numbers.
SELECT hid, tail, id FROM outcome;

-- name: number
-- The number of a key.
SELECT id FROM seen WHERE fp = ?;

-- name: segments
-- Archive files that settled captures reach beyond what is noted: name, noted and reached.
SELECT s.name, s.length, max(o.offset + o.length) FROM segment s JOIN outcome o ON o.segment = s.id
GROUP BY s.id HAVING max(o.offset + o.length) > s.length;

-- name: files
-- How far settled captures reach into the archive's files.
SELECT name, length FROM segment ORDER BY name;

-- name: lower_segment
-- A file of the archive is shorter than was noted: what URLs still point to is all that must be there.
UPDATE segment SET length = max(
  coalesce((SELECT max(o.offset + o.length) FROM outcome o WHERE o.segment = segment.id), 0),
  coalesce((SELECT max(v.offset + v.length) FROM visit v WHERE v.segment = segment.id), 0)
)
WHERE name = ?;

-- name: captures
-- Captures of URLs that have ended, by number, from the first above one.
SELECT o.id, o.hid, o.url, o.state, s.name, o.offset, o.length, o.digest, o.status
FROM outcome o LEFT JOIN segment s ON s.id = o.segment
WHERE o.id > ? AND (o.segment IS NOT NULL OR o.state IN (2, 3)) ORDER BY o.id LIMIT ?;

-- name: mend_total
-- Set a total.
UPDATE tally SET n = ? WHERE name = ?;

-- name: mend_host
-- Set a host's counters.
UPDATE host SET
  n_queued = :queued, n_delayed = :delayed, done = :done, dead = :dead, duplicates = :duplicates, class = :class,
  ready = :queued > 0 AND parked IS NULL
WHERE hid = :hid;

-- name: mend_refusals
-- Set the numbers of refusals.
INSERT INTO refusal (hid, reason, kept, beyond)
SELECT hid, reason, count(*), 0 FROM outcome WHERE state = 5 GROUP BY hid, reason
ON CONFLICT (hid, reason) DO UPDATE SET kept = excluded.kept;

-- name: clear_refusals
-- Forget how many refusals are kept, to count them anew.
UPDATE refusal SET kept = 0;

-- name: mend_segments
-- Note how far settled captures reach.
UPDATE segment SET length = max(
  length, coalesce((SELECT max(o.offset + o.length) FROM outcome o WHERE o.segment = segment.id), 0)
);

-- name: mend_serials
-- No number is given out twice.
UPDATE serial SET last = max(last, CASE name
  WHEN 'url' THEN (SELECT coalesce(max(id), 0) FROM seen)
  ELSE (SELECT coalesce(max(max(token), max(coalesce(released, 0))), 0) FROM host) END);

-- name: void_lease
-- A lease that its host does not know.
DELETE FROM lease WHERE NOT EXISTS (SELECT 1 FROM host h WHERE h.hid = lease.hid AND h.token = lease.token);

-- name: void_token
-- A token without a lease holds nothing.
UPDATE host SET token = NULL, lease_until = NULL, worker = NULL, n_leased = 0
WHERE token IS NOT NULL AND NOT EXISTS (SELECT 1 FROM lease l WHERE l.token = host.token AND l.hid = host.hid);

-- name: turns
-- How many hosts of each pace group are visited.
SELECT pace_group, count(*) FROM host WHERE pace_group IS NOT NULL AND token IS NOT NULL GROUP BY pace_group;

-- name: forgotten_groups
-- Pace groups for which hosts wait although nobody has a turn and nobody will be called.
SELECT DISTINCT h.pace_group FROM host h LEFT JOIN pace_group g ON g.name = h.pace_group
WHERE h.parked = 'group' AND NOT coalesce(g.wanted, 0)
  AND NOT EXISTS (SELECT 1 FROM host o WHERE o.pace_group = h.pace_group AND o.token IS NOT NULL);

-- name: call_groups
-- Leases were mended: whoever waits for a pace group is called anew.
UPDATE pace_group SET wanted = 1;

-- name: lost_capture
-- An outcome whose capture is not there.
UPDATE outcome SET segment = NULL, offset = NULL, length = NULL WHERE id = ?;

-- name: lost_for_good
-- A URL that was to be read from a capture that is not there.
UPDATE outcome SET state = 6, reason = ?, detail = ?, segment = NULL, offset = NULL, length = NULL WHERE id = ?;

-- name: copy_of
-- Whether a URL was done as a copy of another, and as a page.
SELECT copy_of IS NOT NULL, status BETWEEN 200 AND 299 FROM outcome WHERE id = ?;
