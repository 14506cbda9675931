-- The queue takes less room. An ordinary link has a row of eight columns, in which its address stands without what its
-- host's name says already; what there is to say beyond that of a few has a row of its own.

ALTER TABLE queue RENAME TO queue_before;

-- URLs that wait for their host. A row stays while it is leased: it is written twice in its life. `short` is the address
-- from the path's slash on where it begins with https:// and the host's name, the same behind a plus where it begins with
-- http://, the whole address where it begins otherwise.
CREATE TABLE queued (
  hid INTEGER NOT NULL,
  class INTEGER NOT NULL CHECK (class BETWEEN 0 AND 9),
  id INTEGER NOT NULL,
  tail BLOB NOT NULL,
  short TEXT NOT NULL,
  depth INTEGER NOT NULL,
  parent INTEGER,
  found_at INTEGER NOT NULL,
  PRIMARY KEY (hid, class, id)
) STRICT, WITHOUT ROWID;

-- What most of them do not have. `settled` is the last lease that sent the URL back here, `relation` NULL for a hyperlink.
CREATE TABLE queued_more (
  id INTEGER PRIMARY KEY,
  hops INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  relation TEXT,
  suspect INTEGER NOT NULL DEFAULT 0,
  label TEXT,
  meta TEXT,
  request BLOB,
  history TEXT,
  generation INTEGER NOT NULL DEFAULT 0,
  settled INTEGER,
  route TEXT
) STRICT;

-- Both as one, with whole addresses: to read, and to add rows of which there is more to say.
CREATE VIEW queue AS
SELECT
  q.hid, q.class, q.id, q.tail,
  CASE substr(q.short, 1, 1)
    WHEN '/' THEN 'https://' || h.name || q.short
    WHEN '+' THEN 'http://' || h.name || substr(q.short, 2)
    ELSE q.short
  END AS url,
  q.depth, coalesce(m.hops, 0) AS hops, coalesce(m.attempts, 0) AS attempts, q.parent, m.relation, q.found_at,
  coalesce(m.suspect, 0) AS suspect, m.label, m.meta, m.request, m.history, coalesce(m.generation, 0) AS generation,
  m.settled, m.route
FROM queued q LEFT JOIN host h ON h.hid = q.hid LEFT JOIN queued_more m ON m.id = q.id;

CREATE TRIGGER queue_comes INSTEAD OF INSERT ON queue
BEGIN
  INSERT INTO queued (hid, class, id, tail, short, depth, parent, found_at) VALUES (
    NEW.hid, NEW.class, NEW.id, NEW.tail,
    coalesce((
      SELECT CASE
        WHEN substr(NEW.url, 1, length(h.name) + 9) = 'https://' || h.name || '/' THEN substr(NEW.url, length(h.name) + 9)
        WHEN substr(NEW.url, 1, length(h.name) + 8) = 'http://' || h.name || '/'
        THEN '+' || substr(NEW.url, length(h.name) + 8)
      END
      FROM host h WHERE h.hid = NEW.hid
    ), NEW.url),
    NEW.depth, NEW.parent, NEW.found_at
  );
  INSERT INTO queued_more (id, hops, attempts, relation, suspect, label, meta, request, history, generation, settled, route)
  SELECT
    NEW.id, NEW.hops, NEW.attempts, NEW.relation, NEW.suspect, NEW.label, NEW.meta, NEW.request, NEW.history,
    NEW.generation, NEW.settled, NEW.route
  WHERE NEW.hops <> 0 OR NEW.attempts <> 0 OR NEW.suspect <> 0 OR NEW.generation <> 0
    OR coalesce(NEW.relation, NEW.label, NEW.meta, NEW.request, NEW.history, NEW.settled, NEW.route) IS NOT NULL;
END;

INSERT INTO queue (
  hid, class, id, tail, url, depth, hops, attempts, parent, relation, found_at, suspect, label, meta, request, history,
  generation, settled, route
) SELECT
  hid, class, id, tail, url, depth, hops, attempts, parent, relation, found_at, suspect, label, meta, request, history,
  generation, settled, route
FROM queue_before ORDER BY hid, class, id;
DROP TABLE queue_before;
