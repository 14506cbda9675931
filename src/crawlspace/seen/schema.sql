-- A seen-set: its keys, and one row that says how long they are and how many there are. Made once, in one go.
BEGIN IMMEDIATE;

-- Without a rowid the key is the row: some 24 bytes for one of 16, since neighbours share a page.
CREATE TABLE IF NOT EXISTS seen (
  key BLOB PRIMARY KEY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS facts (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  key_bytes INTEGER NOT NULL CHECK (key_bytes IN (8, 16)),
  known INTEGER NOT NULL DEFAULT 0 CHECK (known >= 0)
) STRICT;

-- `crse` in the file's header tells our files from other SQLite files; then the number of this format.
PRAGMA application_id = 0x63727365;
PRAGMA user_version = 1;

COMMIT;
