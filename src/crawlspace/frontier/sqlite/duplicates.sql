-- Groups of pages that say the same or nearly so, for reports and exports.

-- name: members
-- Members of groups, group by group; of one group or of all.
SELECT
  p.grp, p.id, o.url, h.name, p.text, p.kin, o.found_at, o.relation, d.canonical, s.name, o.offset, o.length
FROM page p
JOIN outcome o ON o.id = p.id
JOIN host h ON h.hid = o.hid
LEFT JOIN declared d ON d.id = p.id
LEFT JOIN segment s ON s.id = o.segment
WHERE p.grp IS NOT NULL AND (:grp IS NULL OR p.grp = :grp) ORDER BY p.grp, p.id;

-- name: members_by_text
-- Members of all groups, group by group, those with one text together.
SELECT
  p.grp, p.id, o.url, h.name, p.text, p.kin, o.found_at, o.relation, d.canonical, s.name, o.offset, o.length
FROM page p
JOIN outcome o ON o.id = p.id
JOIN host h ON h.hid = o.hid
LEFT JOIN declared d ON d.id = p.id
LEFT JOIN segment s ON s.id = o.segment
WHERE p.grp IS NOT NULL ORDER BY p.grp, p.text, p.id;

-- name: pages
-- All pages with a text, by number; of one host or of all.
SELECT
  p.grp, p.id, o.url, h.name, p.text, p.kin, o.found_at, o.relation, d.canonical, s.name, o.offset, o.length
FROM page p
JOIN outcome o ON o.id = p.id
JOIN host h ON h.hid = o.hid
LEFT JOIN declared d ON d.id = p.id
LEFT JOIN segment s ON s.id = o.segment
WHERE :host IS NULL OR h.name = :host ORDER BY p.id;

-- name: page
-- One page with a text.
SELECT
  p.grp, p.id, o.url, h.name, p.text, p.kin, o.found_at, o.relation, d.canonical, s.name, o.offset, o.length
FROM page p
JOIN outcome o ON o.id = p.id
JOIN host h ON h.hid = o.hid
LEFT JOIN declared d ON d.id = p.id
LEFT JOIN segment s ON s.id = o.segment
WHERE p.id = ?;

-- name: group_of
-- The group and the text of a page.
SELECT grp, text FROM page WHERE id = ?;

-- name: targets
-- Where redirects lead to.
SELECT target FROM outcome WHERE state = 4 AND target IS NOT NULL;

-- name: make_redirects
-- How many redirects lead to a page, by its canonical URL; in a nameless database that lies on disk when it is large.
CREATE TABLE redirect (url TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- name: count_redirect
-- One redirect more.
INSERT INTO redirect (url, n) VALUES (?, 1) ON CONFLICT (url) DO UPDATE SET n = n + 1;

-- name: make_links
-- How many links lead to a page, by a hash of its canonical URL; there too.
CREATE TABLE link (key BLOB PRIMARY KEY, n INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- name: count_link
-- One link more.
INSERT INTO link (key, n) VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET n = n + 1;

-- name: links
-- How many links lead to a page.
SELECT n FROM link WHERE key = ?;

-- name: redirects
-- How many redirects lead to a page.
SELECT n FROM redirect WHERE url = ?;
