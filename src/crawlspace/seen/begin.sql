-- The length of the keys, kept when the file is new.
INSERT OR IGNORE INTO facts (only, key_bytes) VALUES (1, ?);
