-- name: said
-- Who said these texts first.
SELECT key, id FROM said WHERE key IN (?*);

-- name: say
-- A text belongs to a page from now on.
REPLACE INTO said (key, id) VALUES (?, ?);

-- name: rows
-- Rows of the index of near-duplicates.
SELECT key, members FROM near_row WHERE key IN (?*);

-- name: write_row
-- Set one.
REPLACE INTO near_row (key, members) VALUES (?, ?);

-- name: pages
-- Pages by their numbers.
SELECT id, text, follow, near, kin, length, language, verdict, copy_of, grp, stopped_by, sign, whole
FROM page WHERE id IN (?*);

-- name: write_page
-- Set one.
REPLACE INTO page (id, text, follow, near, kin, length, language, verdict, copy_of, grp, stopped_by, sign, whole)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: shape
-- Pages of one host and shape.
SELECT pages, new, exact, near, dry, run, last, latest FROM shape WHERE hid = ? AND shape = ?;

-- name: write_shape
-- Set them.
REPLACE INTO shape (hid, shape, pages, new, exact, near, dry, run, last, latest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: hosts
-- What hosts brought.
SELECT hid, pages, exact, near, shapes, pairs, links, known FROM host_content WHERE hid IN (?*);

-- name: write_host
-- Set it.
INSERT INTO host_content (hid, pages, exact, near, shapes, pairs, links, known) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (hid) DO UPDATE SET
  pages = excluded.pages, exact = excluded.exact, near = excluded.near, shapes = excluded.shapes, pairs = excluded.pairs,
  links = excluded.links, known = excluded.known;

-- name: add_hour
-- What an hour brought more.
INSERT INTO hour_content (hour, hid, pages, copies, exact, near, links, known) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (hour, hid) DO UPDATE SET
  pages = pages + excluded.pages, copies = copies + excluded.copies, exact = exact + excluded.exact,
  near = near + excluded.near, links = links + excluded.links, known = known + excluded.known;

-- name: add_total
-- Move a total.
UPDATE content_total SET n = n + ? WHERE name = ?;

-- name: runs
-- Shapes of these hosts whose pages say nothing new any more. The number is the shortest run that matters.
SELECT hid, shape, run FROM shape INDEXED BY shape_run WHERE hid IN (?*) AND run > 0 AND run >= ?;

-- name: any_run
-- Whether any shape has a run as long as this.
SELECT 1 FROM shape INDEXED BY shape_longest WHERE run > 0 AND run >= ? LIMIT 1;

-- name: done_before
-- Which of these pages are done, and how deep.
SELECT id, depth FROM outcome WHERE id IN (?*) AND state = 3;

-- name: groups
-- Members of groups, group by group, from the first behind a place.
SELECT p.grp, p.id, p.text, p.follow, p.near, p.kin, p.length, p.language, p.verdict, p.copy_of, p.grp, p.stopped_by,
  p.sign, p.whole
FROM page p WHERE p.grp IS NOT NULL AND (p.grp, p.id) > (?, ?) ORDER BY p.grp, p.id LIMIT ?;

-- name: addresses
-- Fetch URLs of these.
SELECT id, url FROM outcome WHERE id IN (?*);

-- name: shapes
-- Shapes of all hosts, those with the longest run first, then those with the most pages.
SELECT coalesce(h.name, ''), s.shape, s.pages, s.new, s.exact, s.near, s.run, s.last
FROM shape s LEFT JOIN host h ON h.hid = s.hid
ORDER BY s.run DESC, s.pages DESC, s.hid, s.shape LIMIT :limit;

-- name: suspects
-- Those with a long run alone.
SELECT coalesce(h.name, ''), s.shape, s.pages, s.new, s.exact, s.near, s.run, s.last
FROM shape s INDEXED BY shape_longest LEFT JOIN host h ON h.hid = s.hid
WHERE s.run > 0 AND s.run >= :run ORDER BY s.run DESC, s.pages DESC, s.hid, s.shape LIMIT :limit;

-- name: shapes_of_host
-- Those of one host.
SELECT coalesce(h.name, ''), s.shape, s.pages, s.new, s.exact, s.near, s.run, s.last
FROM shape s LEFT JOIN host h ON h.hid = s.hid
WHERE s.hid = :hid AND s.run >= :run ORDER BY s.run DESC, s.pages DESC, s.hid, s.shape LIMIT :limit;

-- name: hours
-- What hours brought, of one host or of all.
SELECT hour, sum(pages), sum(copies), sum(exact), sum(near), sum(links), sum(known) FROM hour_content
WHERE :hid IS NULL OR hid = :hid GROUP BY hour ORDER BY hour;

-- name: totals
-- All totals.
SELECT name, n FROM content_total;

-- name: probe
-- A host's answer to a path that nobody links to.
SELECT probed_at, probe_status, probe_digest, probe_near, probe_length FROM host_content
WHERE hid = ? AND probed_at IS NOT NULL;

-- name: keep_probe
-- Keep it.
INSERT INTO host_content (hid, probed_at, probe_status, probe_digest, probe_near, probe_length) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (hid) DO UPDATE SET
  probed_at = excluded.probed_at, probe_status = excluded.probe_status, probe_digest = excluded.probe_digest,
  probe_near = excluded.probe_near, probe_length = excluded.probe_length;
