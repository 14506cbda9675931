-- name: objects
-- How many tables and indexes the file has: 0 says that it is new.
SELECT count(*) FROM sqlite_schema;

-- name: write_format
-- Keep the number of the format beside the crawl's facts.
REPLACE INTO meta (key, value) VALUES ('format', ?);
