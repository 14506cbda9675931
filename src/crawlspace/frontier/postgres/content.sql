-- name: claim_texts
-- Texts that nobody has said belong to these pages, unless others were first; the caller then waits for those others.
INSERT INTO said (key, id) SELECT * FROM unnest(%(key)s::bigint[], %(id)s::bigint[]) ON CONFLICT DO NOTHING;

-- name: said
-- Who said these texts first.
SELECT key, id FROM said WHERE key = ANY (%(key)s::bigint[]);

-- name: say
-- Texts belong to pages from now on.
INSERT INTO said (key, id) SELECT * FROM unnest(%(key)s::bigint[], %(id)s::bigint[])
ON CONFLICT (key) DO UPDATE SET id = excluded.id;

-- name: make_rows
-- Rows of the index of near-duplicates that are not there yet.
INSERT INTO near_row (key, members) SELECT k, '' FROM unnest(%(key)s::bigint[]) AS k ON CONFLICT DO NOTHING;

-- name: rows
-- Rows of the index of near-duplicates, held in their order until the end of the transaction.
SELECT key, members FROM near_row WHERE key = ANY (%(key)s::bigint[]) ORDER BY key FOR UPDATE;

-- name: write_rows
-- Set some.
UPDATE near_row r SET members = k.members
FROM unnest(%(key)s::bigint[], %(members)s::bytea[]) AS k (key, members) WHERE r.key = k.key;

-- name: pages
-- Pages by their numbers, and whether they are done and how deep (NULL: not).
SELECT p.id, p.text, p.follow, p.near, p.kin, p.length, p.language, p.verdict, p.copy_of, p.grp, p.stopped_by, p.sign,
  p.whole, o.depth
FROM page p LEFT JOIN outcome o ON o.shard = p.shard AND o.id = p.id AND o.state = 3
WHERE p.id = ANY (%(id)s::bigint[]);

-- name: write_pages
-- Set pages.
INSERT INTO page AS p (
  shard, id, text, follow, near, kin, length, language, verdict, copy_of, grp, stopped_by, sign, whole
) SELECT * FROM unnest(
  %(shard)s::smallint[], %(id)s::bigint[], %(text)s::uuid[], %(follow)s::bigint[], %(near)s::bigint[], %(kin)s::bigint[],
  %(length)s::integer[], %(language)s::text[], %(verdict)s::smallint[], %(copy_of)s::bigint[], %(grp)s::bigint[],
  %(stopped_by)s::bigint[], %(sign)s::text[], %(whole)s::boolean[]
) ON CONFLICT (id) DO UPDATE SET
  shard = excluded.shard, text = excluded.text, follow = excluded.follow, near = excluded.near, kin = excluded.kin,
  length = excluded.length, language = excluded.language, verdict = excluded.verdict, copy_of = excluded.copy_of,
  grp = excluded.grp, stopped_by = excluded.stopped_by, sign = excluded.sign, whole = excluded.whole;

-- name: begin_groups
-- These pages begin a group, unless they are in one.
UPDATE page SET grp = id WHERE id = ANY (%(id)s::bigint[]) AND grp IS NULL;

-- name: shapes_of
-- Pages of these hosts and shapes.
SELECT s.hid, s.shape, s.pages, s.new, s.exact, s.near, s.dry, s.run, s.last, s.latest
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[], %(shape)s::text[]) AS k (shard, hid, shape)
JOIN shape s ON s.shard = k.shard AND s.hid = k.hid AND s.shape = k.shape;

-- name: write_shapes
-- Set them.
INSERT INTO shape (shard, hid, shape, pages, new, exact, near, dry, run, last, latest)
SELECT * FROM unnest(
  %(shard)s::smallint[], %(hid)s::bigint[], %(shape)s::text[], %(pages)s::integer[], %(new)s::integer[],
  %(exact)s::integer[], %(near)s::integer[], %(dry)s::integer[], %(run)s::integer[], %(last)s::bigint[], %(latest)s::bytea[]
) ON CONFLICT (shard, hid, shape) DO UPDATE SET
  pages = excluded.pages, new = excluded.new, exact = excluded.exact, near = excluded.near, dry = excluded.dry,
  run = excluded.run, last = excluded.last, latest = excluded.latest;

-- name: hosts
-- What hosts brought.
SELECT h.hid, h.pages, h.exact, h.near, h.shapes, h.pairs, h.links, h.known
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[]) AS k (shard, hid)
JOIN host_content h ON h.shard = k.shard AND h.hid = k.hid;

-- name: write_hosts
-- Set it.
INSERT INTO host_content (shard, hid, pages, exact, near, shapes, pairs, links, known)
SELECT * FROM unnest(
  %(shard)s::smallint[], %(hid)s::bigint[], %(pages)s::integer[], %(exact)s::integer[], %(near)s::integer[],
  %(shapes)s::integer[], %(pairs)s::integer[], %(links)s::bigint[], %(known)s::bigint[]
) ON CONFLICT (shard, hid) DO UPDATE SET
  pages = excluded.pages, exact = excluded.exact, near = excluded.near, shapes = excluded.shapes, pairs = excluded.pairs,
  links = excluded.links, known = excluded.known;

-- name: add_hours
-- What an hour brought more.
INSERT INTO hour_content AS h (shard, hid, hour, pages, copies, exact, near, links, known)
SELECT * FROM unnest(
  %(shard)s::smallint[], %(hid)s::bigint[], %(hour)s::bigint[], %(pages)s::integer[], %(copies)s::integer[],
  %(exact)s::integer[], %(near)s::integer[], %(links)s::bigint[], %(known)s::bigint[]
) ON CONFLICT (shard, hid, hour) DO UPDATE SET
  pages = h.pages + excluded.pages, copies = h.copies + excluded.copies, exact = h.exact + excluded.exact,
  near = h.near + excluded.near, links = h.links + excluded.links, known = h.known + excluded.known;

-- name: add_totals
-- Move the totals.
UPDATE content_total SET
  exact = exact + %(exact)s, near = near + %(near)s, stopped = stopped + %(stopped)s,
  links = links + %(links)s, known = known + %(known)s
WHERE slot = %(slot)s;

-- name: runs
-- Shapes of these hosts whose pages say nothing new any more. The number is the shortest run that matters.
SELECT s.hid, s.shape, s.run
FROM unnest(%(shard)s::smallint[], %(hid)s::bigint[]) AS k (shard, hid)
JOIN shape s ON s.shard = k.shard AND s.hid = k.hid AND s.run > 0 AND s.run >= %(least)s;

-- name: groups
-- Members of groups, group by group, from the first behind a place.
SELECT id, text, follow, near, kin, length, language, verdict, copy_of, grp, stopped_by, sign, whole
FROM page WHERE grp IS NOT NULL AND (grp, id) > (%(group)s::bigint, %(id)s::bigint) ORDER BY grp, id LIMIT %(limit)s;

-- name: addresses
-- Fetch URLs of these. A number alone says no shard.
SELECT id, url FROM outcome WHERE shard = ANY (%(all)s::smallint[]) AND id = ANY (%(id)s::bigint[]);

-- name: shapes
-- Shapes of all hosts, those with the longest run first, then those with the most pages.
SELECT coalesce(h.name, ''), s.shape, s.pages, s.new, s.exact, s.near, s.run, s.last
FROM shape s LEFT JOIN host h ON h.shard = s.shard AND h.hid = s.hid
ORDER BY s.run DESC, s.pages DESC, s.hid, s.shape LIMIT %(limit)s;

-- name: suspects
-- Those with a long run alone.
SELECT coalesce(h.name, ''), s.shape, s.pages, s.new, s.exact, s.near, s.run, s.last
FROM shape s LEFT JOIN host h ON h.shard = s.shard AND h.hid = s.hid
WHERE s.run > 0 AND s.run >= %(run)s ORDER BY s.run DESC, s.pages DESC, s.hid, s.shape LIMIT %(limit)s;

-- name: shapes_of_host
-- Those of one host.
SELECT coalesce(h.name, ''), s.shape, s.pages, s.new, s.exact, s.near, s.run, s.last
FROM shape s LEFT JOIN host h ON h.shard = s.shard AND h.hid = s.hid
WHERE s.shard = %(shard)s AND s.hid = %(hid)s AND s.run >= %(run)s ORDER BY s.run DESC, s.pages DESC, s.hid, s.shape LIMIT %(limit)s;

-- name: hours
-- What hours brought, of one host or of all.
SELECT hour, sum(pages)::bigint, sum(copies)::bigint, sum(exact)::bigint, sum(near)::bigint, sum(links)::bigint,
  sum(known)::bigint
FROM hour_content
WHERE %(hid)s::bigint IS NULL OR hid = %(hid)s::bigint GROUP BY hour ORDER BY hour;

-- name: totals
-- All totals.
SELECT sum(exact)::bigint, sum(near)::bigint, sum(stopped)::bigint, sum(links)::bigint, sum(known)::bigint
FROM content_total;

-- name: probe
-- A host's answer to a path that nobody links to.
SELECT probed_at, probe_status, probe_digest, probe_near, probe_length FROM host_content
WHERE shard = %(shard)s AND hid = %(hid)s AND probed_at IS NOT NULL;

-- name: keep_probe
-- Keep it.
INSERT INTO host_content (shard, hid, probed_at, probe_status, probe_digest, probe_near, probe_length)
VALUES (%(shard)s, %(hid)s, %(at)s, %(status)s, %(digest)s, %(near)s, %(length)s)
ON CONFLICT (shard, hid) DO UPDATE SET
  probed_at = excluded.probed_at, probe_status = excluded.probe_status, probe_digest = excluded.probe_digest,
  probe_near = excluded.probe_near, probe_length = excluded.probe_length;
