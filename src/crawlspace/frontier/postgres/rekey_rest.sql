-- name: outcome_end
-- The row at which the next rows with an outcome end.
SELECT shard, id FROM (
  SELECT o.shard, o.id FROM outcome o WHERE (o.shard, o.id) > (%(a0)s::smallint, %(a1)s::bigint)
  ORDER BY o.shard, o.id LIMIT %(limit)s
) AS x ORDER BY shard DESC, id DESC LIMIT 1;

-- name: point_outcome
-- Outcomes name the URL that stayed as their parent and first copy.
UPDATE outcome o SET
  parent = coalesce((SELECT m.winner FROM merged m WHERE m.id = o.parent), o.parent),
  copy_of = coalesce((SELECT m.winner FROM merged m WHERE m.id = o.copy_of), o.copy_of)
WHERE (o.shard, o.id) > (%(a0)s::smallint, %(a1)s::bigint) AND (o.shard, o.id) <= (%(b0)s::smallint, %(b1)s::bigint)
  AND (EXISTS (SELECT FROM merged m WHERE m.id = o.parent) OR EXISTS (SELECT FROM merged m WHERE m.id = o.copy_of));

-- name: no_own_parent
-- What was found on another spelling of itself has no parent.
UPDATE outcome o SET parent = NULL
WHERE (o.shard, o.id) > (%(a0)s::smallint, %(a1)s::bigint) AND (o.shard, o.id) <= (%(b0)s::smallint, %(b1)s::bigint)
  AND o.parent = o.id;

-- name: no_own_copy
-- No page is a copy of itself.
UPDATE outcome o SET copy_of = NULL
WHERE (o.shard, o.id) > (%(a0)s::smallint, %(a1)s::bigint) AND (o.shard, o.id) <= (%(b0)s::smallint, %(b1)s::bigint)
  AND o.copy_of = o.id RETURNING o.hid;

-- name: queue_end
-- The row at which the next rows of the queue end.
SELECT shard, hid, class, id FROM (
  SELECT q.shard, q.hid, q.class, q.id FROM queue q
  WHERE (q.shard, q.hid, q.class, q.id) > (%(a0)s::smallint, %(a1)s::bigint, %(a2)s::smallint, %(a3)s::bigint)
  ORDER BY q.shard, q.hid, q.class, q.id LIMIT %(limit)s
) AS x ORDER BY shard DESC, hid DESC, class DESC, id DESC LIMIT 1;

-- name: point_queue
-- Queued URLs name the URL that stayed as their parent.
UPDATE queue q SET parent = (SELECT nullif(m.winner, q.id) FROM merged m WHERE m.id = q.parent)
WHERE (q.shard, q.hid, q.class, q.id) > (%(a0)s::smallint, %(a1)s::bigint, %(a2)s::smallint, %(a3)s::bigint)
  AND (q.shard, q.hid, q.class, q.id) <= (%(b0)s::smallint, %(b1)s::bigint, %(b2)s::smallint, %(b3)s::bigint)
  AND EXISTS (SELECT FROM merged m WHERE m.id = q.parent);

-- name: delayed_end
-- The row at which the next delayed rows end.
SELECT shard, hid, id FROM (
  SELECT d.shard, d.hid, d.id FROM delayed d
  WHERE (d.shard, d.hid, d.id) > (%(a0)s::smallint, %(a1)s::bigint, %(a2)s::bigint)
  ORDER BY d.shard, d.hid, d.id LIMIT %(limit)s
) AS x ORDER BY shard DESC, hid DESC, id DESC LIMIT 1;

-- name: point_delayed
-- Delayed URLs name the URL that stayed as their parent.
UPDATE delayed d SET parent = (SELECT nullif(m.winner, d.id) FROM merged m WHERE m.id = d.parent)
WHERE (d.shard, d.hid, d.id) > (%(a0)s::smallint, %(a1)s::bigint, %(a2)s::bigint)
  AND (d.shard, d.hid, d.id) <= (%(b0)s::smallint, %(b1)s::bigint, %(b2)s::bigint)
  AND EXISTS (SELECT FROM merged m WHERE m.id = d.parent);

-- name: visit_end
-- The row at which the next earlier visits end.
SELECT shard, id, generation FROM (
  SELECT v.shard, v.id, v.generation FROM visit v
  WHERE (v.shard, v.id, v.generation) > (%(a0)s::smallint, %(a1)s::bigint, %(a2)s::integer)
  ORDER BY v.shard, v.id, v.generation LIMIT %(limit)s
) AS x ORDER BY shard DESC, id DESC, generation DESC LIMIT 1;

-- name: point_visit
-- Earlier visits name the URL that stayed as their first copy.
UPDATE visit v SET copy_of = (SELECT nullif(m.winner, v.id) FROM merged m WHERE m.id = v.copy_of)
WHERE (v.shard, v.id, v.generation) > (%(a0)s::smallint, %(a1)s::bigint, %(a2)s::integer)
  AND (v.shard, v.id, v.generation) <= (%(b0)s::smallint, %(b1)s::bigint, %(b2)s::integer)
  AND EXISTS (SELECT FROM merged m WHERE m.id = v.copy_of);

-- name: content_end
-- The digest at which the next rows end.
SELECT shard, digest FROM (
  SELECT c.shard, c.digest FROM content c WHERE (c.shard, c.digest) > (%(a0)s::smallint, %(a1)s::uuid)
  ORDER BY c.shard, c.digest LIMIT %(limit)s
) AS x ORDER BY shard DESC, digest DESC LIMIT 1;

-- name: point_content
-- Bytes belong to the URL that stayed.
UPDATE content c SET id = (SELECT m.winner FROM merged m WHERE m.id = c.id)
WHERE (c.shard, c.digest) > (%(a0)s::smallint, %(a1)s::uuid) AND (c.shard, c.digest) <= (%(b0)s::smallint, %(b1)s::uuid)
  AND EXISTS (SELECT FROM merged m WHERE m.id = c.id);

-- name: hosts_after
-- The next hosts; then whether a URL of each is known, and whether it has refusals, kept or counted.
SELECT
  h.shard, h.hid, h.name, h.seed, h.met, h.fetched, h.discovered,
  EXISTS (
    SELECT FROM seen s WHERE s.shard = h.shard
      AND s.fp >= (lpad(to_hex(h.hid), 12, '0') || repeat('0', 20))::uuid
      AND s.fp <= (lpad(to_hex(h.hid), 12, '0') || repeat('f', 20))::uuid
  ),
  EXISTS (
    SELECT FROM refusal r WHERE r.shard = h.shard AND r.hid = h.hid AND (r.kept > 0 OR r.beyond > 0)
  )
FROM host h WHERE (h.shard, h.hid) > (%(a0)s::smallint, %(a1)s::bigint) ORDER BY h.shard, h.hid LIMIT %(limit)s;

-- name: drop_empty_refusals
-- Reasons of hosts for which nothing is refused.
DELETE FROM refusal r USING unnest(%(shard)s::smallint[], %(hid)s::bigint[]) AS k (shard, hid)
WHERE r.shard = k.shard AND r.hid = k.hid AND r.kept = 0 AND r.beyond = 0;

-- name: inherit_refusals
-- Refusals of a host that were only counted go with its name.
INSERT INTO refusal AS r (shard, hid, reason, kept, beyond)
SELECT %(new_shard)s::smallint, %(new)s::bigint, o.reason, 0, o.beyond FROM refusal o
WHERE o.shard = %(old_shard)s::smallint AND o.hid = %(old)s::bigint AND o.beyond > 0
ON CONFLICT (shard, hid, reason) DO UPDATE SET beyond = r.beyond + excluded.beyond;

-- name: drop_refusals
-- The refusals of a host that is gone.
DELETE FROM refusal r WHERE r.shard = %(old_shard)s::smallint AND r.hid = %(old)s::bigint;

-- name: drop_host
-- A host that is gone.
DELETE FROM host h WHERE h.shard = %(old_shard)s::smallint AND h.hid = %(old)s::bigint;

-- name: inherit_host
-- What a host brought goes to its heir.
INSERT INTO host_content AS c (shard, hid, pages, exact, near, shapes, pairs, links, known)
SELECT %(new_shard)s::smallint, %(new)s::bigint, o.pages, o.exact, o.near, 0, 0, o.links, o.known FROM host_content o
WHERE o.shard = %(old_shard)s::smallint AND o.hid = %(old)s::bigint
ON CONFLICT (shard, hid) DO UPDATE SET
  pages = c.pages + excluded.pages, exact = c.exact + excluded.exact, near = c.near + excluded.near,
  links = c.links + excluded.links, known = c.known + excluded.known;

-- name: inherit_hours
-- And in each hour.
INSERT INTO hour_content AS c (hour, shard, hid, pages, copies, exact, near, links, known)
SELECT o.hour, %(new_shard)s::smallint, %(new)s::bigint, o.pages, o.copies, o.exact, o.near, o.links, o.known
FROM hour_content o WHERE o.shard = %(old_shard)s::smallint AND o.hid = %(old)s::bigint
ON CONFLICT (shard, hid, hour) DO UPDATE SET
  pages = c.pages + excluded.pages, copies = c.copies + excluded.copies, exact = c.exact + excluded.exact,
  near = c.near + excluded.near, links = c.links + excluded.links, known = c.known + excluded.known;

-- name: inherit_shapes
-- And by shapes that the heir has not: the canonical form of an address may be another now.
INSERT INTO shape (shard, hid, shape, pages, new, exact, near, dry, run, last, latest)
SELECT
  %(new_shard)s::smallint, %(new)s::bigint, o.shape, o.pages, o.new, o.exact, o.near, o.dry, o.run, o.last, o.latest
FROM shape o WHERE o.shard = %(old_shard)s::smallint AND o.hid = %(old)s::bigint
ON CONFLICT DO NOTHING;

-- name: leave_host
-- What a host that is gone brought.
DELETE FROM host_content c WHERE c.shard = %(old_shard)s::smallint AND c.hid = %(old)s::bigint;

-- name: leave_hours
-- And in each hour.
DELETE FROM hour_content c WHERE c.shard = %(old_shard)s::smallint AND c.hid = %(old)s::bigint;

-- name: leave_shapes
-- And by shapes.
DELETE FROM shape c WHERE c.shard = %(old_shard)s::smallint AND c.hid = %(old)s::bigint;

-- name: forget_crowds
-- How many hosts domains and addresses have is counted anew.
DELETE FROM crowd;

-- name: counted_hosts
-- The next hosts: whether each counts for its domain, whether it is only known since its domain had no room, and the
-- address for which it counts.
SELECT
  h.shard, h.hid, h.name, h.met,
  NOT h.met AND EXISTS (
    SELECT FROM refusal r WHERE r.shard = h.shard AND r.hid = h.hid AND r.reason = %(reason)s AND r.kept > 0
  ),
  CASE WHEN h.parked IS NOT DISTINCT FROM 'address_hosts' THEN NULL ELSE h.address END
FROM host h WHERE (h.shard, h.hid) > (%(a0)s::smallint, %(a1)s::bigint) ORDER BY h.shard, h.hid LIMIT %(limit)s;

-- name: grow_crowds
-- So many hosts more.
INSERT INTO crowd AS c (name, hosts, refused)
SELECT * FROM unnest(%(name)s::text[], %(hosts)s::bigint[], %(refused)s::bigint[])
ON CONFLICT (name) DO UPDATE SET hosts = c.hosts + excluded.hosts, refused = c.refused + excluded.refused;

-- name: page_end
-- The page at which the next pages end.
SELECT max(id) FROM (SELECT p.id FROM page p WHERE p.id > %(a0)s::bigint ORDER BY p.id LIMIT %(limit)s) AS x;

-- name: point_page
-- Pages name the page that stayed as their first copy, their group, and the one that stopped them.
UPDATE page p SET
  copy_of = coalesce((SELECT m.winner FROM merged m WHERE m.id = p.copy_of), p.copy_of),
  grp = coalesce((SELECT m.winner FROM merged m WHERE m.id = p.grp), p.grp),
  stopped_by = coalesce((SELECT m.winner FROM merged m WHERE m.id = p.stopped_by), p.stopped_by)
WHERE p.id > %(a0)s::bigint AND p.id <= %(b0)s::bigint AND (
  EXISTS (SELECT FROM merged m WHERE m.id = p.copy_of) OR EXISTS (SELECT FROM merged m WHERE m.id = p.grp)
  OR EXISTS (SELECT FROM merged m WHERE m.id = p.stopped_by)
);

-- name: count_merged
-- What pages counted for that were merged, by the host that had them.
SELECT m.hid, p.verdict, count(*) FROM page p JOIN merged m ON m.id = p.id
WHERE p.id > %(a0)s::bigint AND p.id <= %(b0)s::bigint GROUP BY m.hid, p.verdict;

-- name: count_own
-- Pages that are copies of themselves by now.
SELECT o.hid, p.verdict, count(*) FROM page p JOIN outcome o ON o.shard = p.shard AND o.id = p.id
WHERE p.id > %(a0)s::bigint AND p.id <= %(b0)s::bigint AND p.copy_of = p.id GROUP BY o.hid, p.verdict;

-- name: no_own_copies
-- No page is its own copy.
UPDATE page p SET verdict = 0, copy_of = NULL
WHERE p.id > %(a0)s::bigint AND p.id <= %(b0)s::bigint AND p.copy_of = p.id;

-- name: drop_pages
-- Pages that were merged have gone.
DELETE FROM page p
WHERE p.id > %(a0)s::bigint AND p.id <= %(b0)s::bigint AND EXISTS (SELECT FROM merged m WHERE m.id = p.id);

-- name: uncount_totals
-- Totals are less by so much.
UPDATE content_total SET exact = exact - %(exact)s, near = near - %(near)s WHERE slot = 0;

-- name: uncount_hosts
-- Hosts brought less: pages, exact and near copies.
UPDATE host_content c SET
  pages = greatest(0, c.pages - k.pages), exact = greatest(0, c.exact - k.exact), near = greatest(0, c.near - k.near)
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[], %(pages)s::integer[], %(exact)s::integer[], %(near)s::integer[])
  AS k (shard, hid, pages, exact, near)
WHERE c.shard = k.shard AND c.hid = k.hid;

-- name: said_end
-- The text at which the next texts end.
SELECT max(key) FROM (SELECT s.key FROM said s WHERE s.key > %(a0)s::bigint ORDER BY s.key LIMIT %(limit)s) AS x;

-- name: point_said
-- Texts belong to the page that stayed.
UPDATE said s SET id = (SELECT m.winner FROM merged m WHERE m.id = s.id)
WHERE s.key > %(a0)s::bigint AND s.key <= %(b0)s::bigint AND EXISTS (SELECT FROM merged m WHERE m.id = s.id);
