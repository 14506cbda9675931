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
-- All pages with a text, by number.
SELECT
  p.grp, p.id, o.url, h.name, p.text, p.kin, o.found_at, o.relation, d.canonical, s.name, o.offset, o.length
FROM page p
JOIN outcome o ON o.id = p.id
JOIN host h ON h.hid = o.hid
LEFT JOIN declared d ON d.id = p.id
LEFT JOIN segment s ON s.id = o.segment
ORDER BY p.id;

-- name: page
-- One page with a text.
SELECT
  p.grp, p.id, o.url, h.name, p.text, p.kin, o.found_at, o.relation, d.canonical, s.name, o.offset, o.length
FROM page p
JOIN outcome o ON o.id = p.id
JOIN host h ON h.hid = o.hid
LEFT JOIN declared d ON d.id = p.id
LEFT JOIN segment s ON s.id = o.segment
WHERE p.id = :id;

-- name: groups_of
-- Groups and texts of pages, by a JSON array of their numbers.
SELECT id, grp, text FROM page WHERE id IN (SELECT value FROM json_each(?));

-- name: targets
-- Where redirects lead to.
SELECT target FROM outcome WHERE state = 4 AND target IS NOT NULL;
