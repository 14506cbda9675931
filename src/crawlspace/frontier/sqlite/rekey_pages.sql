-- Content identity after a re-keying.

-- name: pages_end
-- The page at which the next pages end.
SELECT max(id) FROM (SELECT id FROM page WHERE id > ? ORDER BY id LIMIT ?);

-- name: point_pages
-- Pages name the page that stayed as their first copy, their group, and the one that stopped them.
UPDATE page SET
  copy_of = coalesce((SELECT m.winner FROM merged m WHERE m.id = page.copy_of), copy_of),
  grp = coalesce((SELECT m.winner FROM merged m WHERE m.id = page.grp), grp),
  stopped_by = coalesce((SELECT m.winner FROM merged m WHERE m.id = page.stopped_by), stopped_by)
WHERE id > ? AND id <= ? AND (
  EXISTS (SELECT 1 FROM merged m WHERE m.id = page.copy_of)
  OR EXISTS (SELECT 1 FROM merged m WHERE m.id = page.grp)
  OR EXISTS (SELECT 1 FROM merged m WHERE m.id = page.stopped_by)
);

-- name: count_merged
-- What pages counted for that were merged, by the host that had them.
SELECT m.hid, p.verdict, count(*) FROM page p JOIN merged m ON m.id = p.id
WHERE p.id > ? AND p.id <= ? GROUP BY m.hid, p.verdict;

-- name: count_own
-- Pages that are copies of themselves by now.
SELECT o.hid, p.verdict, count(*) FROM page p JOIN outcome o ON o.id = p.id
WHERE p.id > ? AND p.id <= ? AND p.copy_of = p.id GROUP BY o.hid, p.verdict;

-- name: no_own_copies
-- No page is its own copy.
UPDATE page SET verdict = 0, copy_of = NULL WHERE id > ? AND id <= ? AND copy_of = id;

-- name: drop_pages
-- Pages that were merged have gone.
DELETE FROM page WHERE id > ? AND id <= ? AND EXISTS (SELECT 1 FROM merged m WHERE m.id = page.id);

-- name: uncount_total
-- A total is less by so much.
UPDATE content_total SET n = max(0, n - ?) WHERE name = ?;

-- name: uncount_host
-- A host brought less: pages, exact and near copies.
UPDATE host_content SET pages = max(0, pages - ?), exact = max(0, exact - ?), near = max(0, near - ?) WHERE hid = ?;

-- name: said_end
-- The text at which the next texts end.
SELECT max(key) FROM (SELECT key FROM said WHERE key > ? ORDER BY key LIMIT ?);

-- name: point_said
-- Texts belong to the page that stayed.
UPDATE said SET id = (SELECT m.winner FROM merged m WHERE m.id = said.id)
WHERE key > ? AND key <= ? AND EXISTS (SELECT 1 FROM merged m WHERE m.id = said.id);

-- name: inherit_host
-- What a host brought goes to its heir.
INSERT INTO host_content (hid, pages, exact, near, shapes, pairs, links, known)
SELECT :new, pages, exact, near, 0, 0, links, known FROM host_content WHERE hid = :old
ON CONFLICT (hid) DO UPDATE SET
  pages = pages + excluded.pages, exact = exact + excluded.exact, near = near + excluded.near,
  links = links + excluded.links, known = known + excluded.known;

-- name: inherit_hours
-- And in each hour.
INSERT INTO hour_content (hour, hid, pages, copies, exact, near, links, known)
SELECT hour, :new, pages, copies, exact, near, links, known FROM hour_content WHERE hid = :old
ON CONFLICT (hour, hid) DO UPDATE SET
  pages = pages + excluded.pages, copies = copies + excluded.copies, exact = exact + excluded.exact,
  near = near + excluded.near, links = links + excluded.links, known = known + excluded.known;

-- name: inherit_shapes
-- And by shapes that the heir has not: the canonical form of an address may be another now.
INSERT OR IGNORE INTO shape (hid, shape, pages, new, exact, near, dry, run, last, latest)
SELECT :new, shape, pages, new, exact, near, dry, run, last, latest FROM shape WHERE hid = :old;

-- name: drop_host
-- What a host that is gone brought.
DELETE FROM host_content WHERE hid = ?;

-- name: drop_hours
-- And in each hour.
DELETE FROM hour_content WHERE hid = ?;

-- name: drop_shapes
-- And by shapes.
DELETE FROM shape WHERE hid = ?;
