-- The lane for blocked pages: the routes that a URL was sent on, and what each route cost and brought.

-- Names of routes in order, the present one last, a space between them; NULL for plain HTTP.
ALTER TABLE queue ADD COLUMN route TEXT;
ALTER TABLE delayed ADD COLUMN route TEXT;
ALTER TABLE outcome ADD COLUMN route TEXT;

-- `taken`: requests granted out of the route's budget, whatever came of them. The others count settled requests.
CREATE TABLE route (
  name TEXT PRIMARY KEY,
  taken INTEGER NOT NULL DEFAULT 0 CHECK (taken >= 0),
  requests INTEGER NOT NULL DEFAULT 0,
  pages INTEGER NOT NULL DEFAULT 0,
  blocked INTEGER NOT NULL DEFAULT 0,
  bytes INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
