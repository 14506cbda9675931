-- The lane for blocked pages: the routes that a URL was sent on, and what each route cost and brought.

-- Names of routes in order, the present one last, a space between them; NULL for plain HTTP.
ALTER TABLE queue ADD COLUMN route text;
ALTER TABLE delayed ADD COLUMN route text;
ALTER TABLE outcome ADD COLUMN route text;

-- Requests that were settled. Each worker counts in rows of its own, so that none waits for another.
CREATE TABLE route (
  name text COLLATE "C" NOT NULL,
  worker integer NOT NULL,
  requests bigint NOT NULL,
  pages bigint NOT NULL,
  blocked bigint NOT NULL,
  bytes bigint NOT NULL,
  PRIMARY KEY (name, worker)
);

-- Requests that were granted out of a route's budget, whatever came of them: one row for all workers, so that it holds.
CREATE TABLE route_budget (
  name text COLLATE "C" PRIMARY KEY,
  taken bigint NOT NULL CHECK (taken >= 0)
);
