-- Pace groups, and how many hosts a domain or an address may have.

-- The address to which the host's name resolved, once it was looked up.
ALTER TABLE host ADD COLUMN address text;
-- The group whose turn it has (while it is leased), or for which it waits (`parked` is then 'group'); later a memory.
ALTER TABLE host ADD COLUMN pace_group text;
CREATE INDEX host_of_group ON host (pace_group) WHERE token IS NOT NULL AND pace_group IS NOT NULL;
CREATE INDEX host_for_group ON host (pace_group, next_at) WHERE parked = 'group';
CREATE INDEX host_crowded ON host (address) WHERE parked = 'address_hosts';
CREATE INDEX host_held ON host (held) WHERE held IS NOT NULL AND token IS NOT NULL;

-- The clocks of groups. Who holds a group's turns is said by its hosts. `wanted` is set whenever a turn comes back, and
-- when a host begins to wait although a turn is free; it is taken away when all turns are given, or nobody waits.
-- A group is held after its hosts.
CREATE TABLE pace_group (
  next_at bigint NOT NULL,
  wanted boolean NOT NULL,
  name text PRIMARY KEY
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
CREATE INDEX pace_group_due ON pace_group (next_at) WHERE wanted;

-- How many hosts a domain or an address has that were queued at least once; and how many hosts of a domain are known
-- although they were refused for its number of hosts. A crowd is held after its hosts.
CREATE TABLE crowd (
  hosts bigint NOT NULL CHECK (hosts >= 0),
  refused bigint NOT NULL CHECK (refused >= 0),
  name text PRIMARY KEY
) WITH (fillfactor = 60);

-- Counts the changes that all who work on the crawl must hear of: its scope, what it ignores, hosts that are held.
INSERT INTO meta (key, value) VALUES ('edition', '0');
