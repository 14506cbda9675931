-- What is counted beside a store, to choose who stands for a group.

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
