-- Adds the keys of ?2 bytes that lie end to end in ?1, and gives back the new ones.
-- In order, so that neighbours are looked for while their page is at hand.
WITH RECURSIVE place (start) AS (
  VALUES (1)
  UNION ALL
  SELECT start + ?2 FROM place WHERE start + ?2 <= length(?1)
)
INSERT OR IGNORE INTO seen (key)
SELECT substr(?1, start, ?2) FROM place ORDER BY 1
RETURNING key;
