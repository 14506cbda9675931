-- How much of what pages name is known already: `links` are URLs that pages named, repeats too, `known` those of them that
-- were known. Both count from here on.

ALTER TABLE host_content ADD COLUMN links INTEGER NOT NULL DEFAULT 0;
ALTER TABLE host_content ADD COLUMN known INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hour_content ADD COLUMN links INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hour_content ADD COLUMN known INTEGER NOT NULL DEFAULT 0;
INSERT INTO content_total (name, n) VALUES ('links', 0), ('known', 0);
