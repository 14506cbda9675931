-- Whether a key is there.
SELECT EXISTS (SELECT 1 FROM seen WHERE key = ?);
