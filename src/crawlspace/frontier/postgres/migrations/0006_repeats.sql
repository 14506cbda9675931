-- How much of what pages name is known already: `links` are URLs that pages named, repeats too, `known` those of them that
-- were known. Both count from here on.

ALTER TABLE host_content ADD COLUMN links bigint NOT NULL DEFAULT 0, ADD COLUMN known bigint NOT NULL DEFAULT 0;
ALTER TABLE hour_content ADD COLUMN links bigint NOT NULL DEFAULT 0, ADD COLUMN known bigint NOT NULL DEFAULT 0;
ALTER TABLE content_total ADD COLUMN links bigint NOT NULL DEFAULT 0, ADD COLUMN known bigint NOT NULL DEFAULT 0;
