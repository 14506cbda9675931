-- name: due
-- URLs whose next visit is due, and whether their host can have it.
SELECT
  o.id, o.hid, o.class, o.state, coalesce(o.status BETWEEN 200 AND 299, 0), o.copy_of IS NOT NULL,
  coalesce(h.held = 'blocked', 0) OR coalesce(h.parked = 'condemned', 0)
    OR (NOT h.seed AND h.n_queued + h.n_delayed >= coalesce(:most, 9223372036854775807))
FROM outcome o CROSS JOIN host h ON h.hid = o.hid
WHERE o.next_visit <= :now ORDER BY o.next_visit LIMIT :limit;

-- name: postpone
-- A visit is thought of again later.
UPDATE outcome SET next_visit = ? WHERE id = ?;

-- name: keep
-- How a visit ended that another one follows.
INSERT INTO visit (
  id, generation, state, at, url, reason, requested_at, status, segment, offset, length, digest, mime, size, etag,
  last_modified, target, copy_of, interval_ms, changed, content
) SELECT
  id, generation, state, at, url, reason, requested_at, status, segment, offset, length, digest, mime, size, etag,
  last_modified, target, copy_of, interval_ms, changed, content
FROM outcome WHERE id = ? ON CONFLICT DO NOTHING;

-- name: requeue
-- The URL joins its host's queue in the next generation, with all its tries.
INSERT INTO queue (
  hid, class, id, tail, url, depth, hops, attempts, parent, relation, found_at, suspect, label, meta, request, history,
  generation, settled, route
) SELECT
  hid, class, id, tail, url, depth, hops, 0, parent, relation, found_at, 0, label, meta, request, NULL, generation + 1,
  token, route
FROM outcome WHERE id = ?;

-- name: forget
-- An outcome is that of an earlier visit now.
DELETE FROM outcome WHERE id = ?;

-- name: visits
-- The latest visits of a URL, the newest first.
SELECT
  id, generation, state, at, url, reason, requested_at, status, segment, offset, length, digest, mime, etag, last_modified,
  target, copy_of, interval_ms, changed, content
FROM visit WHERE id = ? ORDER BY generation DESC LIMIT ?;

-- name: number
-- The number of a key.
SELECT id FROM seen WHERE fp = ?;

-- name: rounds
-- The visits of a URL that others have followed, and their archive files.
SELECT
  v.id, v.generation, v.state, v.at, v.url, v.reason, v.requested_at, v.status, v.segment, v.offset, v.length, v.digest,
  v.mime, v.etag, v.last_modified, v.target, v.copy_of, v.interval_ms, v.changed, v.content,
  (SELECT s.name FROM segment s WHERE s.id = v.segment)
FROM visit v WHERE v.id = ? ORDER BY v.generation;

-- name: next_visit
-- When the first next visit is due.
SELECT min(next_visit) FROM outcome WHERE next_visit IS NOT NULL;

-- name: counted
-- How visits ended, by generation.
SELECT generation, state, changed, present, past FROM round;

-- name: batch_end
-- The number at which the next outcomes end.
SELECT max(id) FROM (SELECT id FROM outcome WHERE id > ? ORDER BY id LIMIT ?);

-- name: plan
-- Outcomes without a plan, or with one made under other settings, get their next visit.
UPDATE outcome SET
  interval_ms = min(max(coalesce(interval_ms, :first), :shortest), :longest),
  next_visit = at + min(max(coalesce(interval_ms, :first), :shortest), :longest)
WHERE id > :after AND id <= :end AND state IN (3, 4);

-- name: bring_forward
-- Somebody says that the page was changed after it was fetched: it is due now.
UPDATE outcome SET next_visit = :now
WHERE id = :id AND next_visit > :now AND requested_at < :modified;
