-- name: host
-- The numbers of a host.
SELECT hid FROM host WHERE name = %(name)s::text;

-- name: reach
-- How far settled captures reach into the files of some workers' archives.
SELECT s.name, s.length FROM segment s JOIN worker w ON w.id = s.worker WHERE w.name = ANY (%(names)s::text[]);

-- name: queued
-- URLs of one shard's queue in its order, then the host's name, and whether a lease holds them. Of some hosts when :hids
-- says so.
SELECT
  q.hid, q.class, q.id, q.tail, q.url, q.depth, q.hops, q.attempts, q.parent, q.relation, q.found_at, q.suspect, q.label,
  q.meta, q.request, q.history, q.generation, q.settled, q.route,
  h.name, coalesce(h.token IS DISTINCT FROM q.settled AND q.id = ANY (l.ids), false)
FROM queue q JOIN host h ON h.shard = q.shard AND h.hid = q.hid LEFT JOIN lease l ON l.shard = h.shard AND l.token = h.token
WHERE q.shard = %(shard)s::smallint AND (%(hids)s::bigint[] IS NULL OR q.hid = ANY (%(hids)s::bigint[]))
ORDER BY q.hid, q.class, q.id;

-- name: delayed
-- URLs of one shard that wait for a time, host by host, then the same.
SELECT
  d.hid, d.class, d.id, d.tail, d.url, d.depth, d.hops, d.attempts, d.parent, d.relation, d.found_at, d.suspect, d.label,
  d.meta, d.request, d.history, d.generation, d.settled, d.route,
  h.name, false
FROM delayed d JOIN host h ON h.shard = d.shard AND h.hid = d.hid
WHERE d.shard = %(shard)s::smallint AND (%(hids)s::bigint[] IS NULL OR d.hid = ANY (%(hids)s::bigint[]))
ORDER BY d.hid, d.id;

-- name: ended
-- Outcomes of one shard by number, then the host's name.
SELECT
  o.hid, o.class, o.id, o.tail, o.url, o.depth, o.hops, o.attempts, o.parent, o.relation, o.found_at, 0, o.label, o.meta,
  o.request, o.history, o.generation, NULL::bigint, o.route,
  o.state, o.at, o.token, o.reason, o.detail, o.requested_at, o.status, o.elapsed_ms, o.segment, o."offset", o.length,
  o.digest, o.mime, o.size, o.etag, o.last_modified, o.target, o.copy_of, o.next_visit, o.interval_ms, o.changed,
  o.content,
  h.name
FROM outcome o JOIN host h ON h.shard = o.shard AND h.hid = o.hid
WHERE o.shard = %(shard)s::smallint AND o.state = ANY (%(states)s::smallint[])
  AND (%(hids)s::bigint[] IS NULL OR o.hid = ANY (%(hids)s::bigint[]))
ORDER BY o.id;

-- name: visited_again
-- Earlier visits of one shard's URLs by number and generation, each with its capture, and with that of the latest behind the last of them.
SELECT
  v.id, v.generation, v.url, coalesce(v.requested_at, v.at), (SELECT s.name FROM segment s WHERE s.id = v.segment), v."offset",
  v.length, v.state, o.generation, o.url, coalesce(o.requested_at, o.at), (SELECT s.name FROM segment s WHERE s.id = o.segment),
  o."offset", o.length, o.state
FROM visit v LEFT JOIN outcome o ON o.shard = v.shard AND o.id = v.id AND o.generation = v.generation + 1
WHERE v.shard = %(shard)s::smallint
ORDER BY v.shard, v.id, v.generation;

-- name: urls
-- Addresses of URLs with an outcome. A number alone says no shard.
SELECT o.id, o.url FROM outcome o WHERE o.shard = ANY (%(all)s::smallint[]) AND o.id = ANY (%(id)s::bigint[]);

-- name: files
-- Names of archive files.
SELECT id, name FROM segment WHERE id = ANY (%(id)s::integer[]);
