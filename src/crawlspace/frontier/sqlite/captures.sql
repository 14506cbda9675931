-- name: original
-- Where a page with these bytes lies: the latest settled capture of the URL that had them first.
SELECT s.name, x.offset, x.length FROM (
  SELECT o.segment, o.offset, o.length, o.at FROM content c JOIN outcome o ON o.id = c.id
  WHERE c.digest = :short AND o.digest = :digest AND o.state = 3
  UNION ALL
  SELECT v.segment, v.offset, v.length, v.at FROM content c JOIN visit v ON v.id = c.id
  WHERE c.digest = :short AND v.digest = :digest AND v.state = 3
) x JOIN segment s ON s.id = x.segment ORDER BY x.at DESC LIMIT 1;

-- name: segments
-- Files of the archive by name, with their numbers.
SELECT name, id FROM segment;

-- name: add_segment
-- An archive file that others were joined into.
INSERT INTO segment (name, length) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET length = excluded.length RETURNING id;

-- name: moves
-- Where files went, for as long as the transaction lasts.
CREATE TEMP TABLE moved (segment INTEGER PRIMARY KEY, target INTEGER NOT NULL, base INTEGER NOT NULL);

-- name: add_move
-- One file that went into another.
INSERT INTO temp.moved (segment, target, base) VALUES (?, ?, ?);

-- name: move_outcomes
-- Latest captures point to where they lie now.
UPDATE outcome SET segment = m.target, offset = offset + m.base FROM temp.moved m WHERE outcome.segment = m.segment;

-- name: move_visits
-- Earlier captures too.
UPDATE visit SET segment = m.target, offset = offset + m.base FROM temp.moved m WHERE visit.segment = m.segment;

-- name: has_merged
-- Whether this store was ever re-keyed.
SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'merged';

-- name: move_merged
-- And those of URLs that became one with others.
UPDATE merged SET segment = m.target, offset = offset + m.base FROM temp.moved m WHERE merged.segment = m.segment;

-- name: drop_segments
-- The files that are gone.
DELETE FROM segment WHERE id IN (SELECT segment FROM temp.moved);

-- name: end_moves
-- Nothing is left of the list.
DROP TABLE temp.moved;
