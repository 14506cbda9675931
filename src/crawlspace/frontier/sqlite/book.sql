-- name: host_delta
-- Move a host's counters; it is ready while it has URLs and no reason to rest, and rests when its budget is spent.
UPDATE host SET
  seed = max(seed, :seed),
  met = max(met, :met),
  class = CASE WHEN n_queued > 0 THEN min(class, :class) ELSE :class END,
  n_queued = n_queued + :queued,
  n_leased = n_leased + :leased,
  n_delayed = n_delayed + :delayed,
  fetched = fetched + :fetched,
  done = done + :done,
  dead = dead + :dead,
  discovered = discovered + :discovered,
  duplicates = duplicates + :duplicates,
  parked = CASE
    WHEN parked IS NULL AND fetched + :fetched >= CASE max(seed, :seed) WHEN 1 THEN :seed_pages ELSE :pages END
    THEN 'host_budget' ELSE parked END,
  ready = n_queued + :queued > 0 AND parked IS NULL
    AND coalesce(fetched + :fetched < CASE max(seed, :seed) WHEN 1 THEN :seed_pages ELSE :pages END, 1)
WHERE hid = :hid;

-- name: host_grows
-- So many URLs more join the queue of a host for which nothing else changes.
UPDATE host SET n_queued = n_queued + ?, discovered = discovered + ? WHERE hid = ?;

-- name: tally_delta
-- Move a total.
UPDATE tally SET n = n + ? WHERE name = ?;
