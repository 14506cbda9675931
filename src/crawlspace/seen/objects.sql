-- How many tables and indexes the file has: 0 says that it is new.
SELECT count(*) FROM sqlite_schema;
