-- name: host
-- The number of a host.
SELECT hid FROM host WHERE name = ? LIMIT 1;

-- name: reach
-- How far settled captures reach into the archive's files.
SELECT name, length FROM segment;

-- name: leases
-- Live leases and the URLs they hold, as a JSON array of [class, id].
SELECT hid, token, urls FROM lease;

-- name: queued
-- URLs of the queue in its order, then the names behind their numbers: parent, host. Of one host when :hid says so.
SELECT
  q.hid, q.class, q.id, q.tail, q.url, q.depth, q.hops, q.attempts, q.parent, q.relation, q.found_at, q.suspect, q.label,
  q.meta, q.request, q.history, q.generation, q.settled, q.route,
  (SELECT p.url FROM outcome p WHERE p.id = q.parent), h.name
FROM queue q CROSS JOIN host h ON h.hid = q.hid WHERE :hid IS NULL OR q.hid = :hid;

-- name: delayed
-- URLs that wait for a time, host by host, then the names behind their numbers. Of one host when :hid says so.
SELECT
  d.hid, d.class, d.id, d.tail, d.url, d.depth, d.hops, d.attempts, d.parent, d.relation, d.found_at, d.suspect, d.label,
  d.meta, d.request, d.history, d.generation, d.settled, d.route,
  (SELECT p.url FROM outcome p WHERE p.id = d.parent), h.name
FROM delayed d CROSS JOIN host h ON h.hid = d.hid WHERE :hid IS NULL OR d.hid = :hid;

-- name: ended
-- Outcomes by number, then the names behind their numbers: parent, first copy, archive file, host. :states is a sum of
-- powers of two, a bit for each state that is wanted.
SELECT
  o.hid, o.class, o.id, o.tail, o.url, o.depth, o.hops, o.attempts, o.parent, o.relation, o.found_at, 0, o.label, o.meta,
  o.request, o.history, o.generation, NULL, o.route,
  o.state, o.at, o.token, o.reason, o.detail, o.requested_at, o.status, o.elapsed_ms, o.segment, o.offset, o.length,
  o.digest, o.mime, o.size, o.etag, o.last_modified, o.target, o.copy_of, o.next_visit, o.interval_ms, o.changed,
  o.content,
  (SELECT p.url FROM outcome p WHERE p.id = o.parent),
  (SELECT c.url FROM outcome c WHERE c.id = o.copy_of),
  (SELECT s.name FROM segment s WHERE s.id = o.segment),
  h.name
FROM outcome o CROSS JOIN host h ON h.hid = o.hid
WHERE (:states >> o.state) & 1 AND (:hid IS NULL OR o.hid = :hid) ORDER BY o.id;

-- name: visited_again
-- Earlier visits by number and generation, each with its capture, and with that of the latest behind the last of them.
SELECT
  v.id, v.generation, v.url, coalesce(v.requested_at, v.at), (SELECT s.name FROM segment s WHERE s.id = v.segment), v.offset,
  v.length, v.state, o.generation, o.url, coalesce(o.requested_at, o.at), (SELECT s.name FROM segment s WHERE s.id = o.segment),
  o.offset, o.length, o.state
FROM visit v LEFT JOIN outcome o ON o.id = v.id AND o.generation = v.generation + 1
ORDER BY v.id, v.generation;
