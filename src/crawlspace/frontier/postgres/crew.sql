-- name: words
-- What workers have said of the hosts that they take.
SELECT key, value FROM meta WHERE starts_with(key, 'crew ');

-- name: say
-- One says it.
INSERT INTO meta (key, value) VALUES (%(key)s, %(word)s) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: leave
-- One takes none any more.
DELETE FROM meta WHERE key = %(key)s;

-- name: hosts
-- How many hosts without a pace group some of the workers hold; how many are free whose time comes soon, and how many
-- of those are due, each up to a number that is enough.
SELECT
  (SELECT count(*) FROM host h
   WHERE h.token IS NOT NULL AND h.pace_group IS NULL AND h.worker = ANY (%(worker)s::integer[])),
  (SELECT count(*) FROM (
     SELECT FROM generate_series(0, 9) AS c (class) CROSS JOIN LATERAL (
       SELECT FROM host h WHERE h.class = c.class AND h.ready AND h.token IS NULL AND h.next_at <= %(soon)s
       LIMIT %(enough)s
     ) AS f LIMIT %(enough)s
   ) AS g),
  (SELECT count(*) FROM (
     SELECT FROM generate_series(0, 9) AS c (class) CROSS JOIN LATERAL (
       SELECT FROM host h WHERE h.class = c.class AND h.ready AND h.token IS NULL AND h.next_at <= %(now)s
       LIMIT %(enough)s
     ) AS f LIMIT %(enough)s
   ) AS g);
