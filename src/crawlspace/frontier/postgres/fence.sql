-- name: share
-- No re-keying begins or goes on until this transaction ends; it waits while one takes a step.
SELECT pg_advisory_xact_lock_shared(hashtextextended('crawlspace rules ' || current_schema(), 0));

-- name: alone
-- Nobody else writes until this transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('crawlspace rules ' || current_schema(), 0));

-- name: now
-- The store's own time in milliseconds, and what keeps workers and a re-keying apart: one fact, since this is asked each time.
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint, (SELECT value FROM meta WHERE key = 'rekeyings');

-- name: first
-- Whether this session is the one that re-keys: there is one at a time.
SELECT pg_try_advisory_lock(hashtextextended('crawlspace rekey ' || %(schema)s, 0));
