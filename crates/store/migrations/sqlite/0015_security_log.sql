-- From where it was done, what else a reader wants to know, and how often: refused requests and started programs are counted,
-- one row for a minute.
ALTER TABLE audit ADD COLUMN address TEXT;
ALTER TABLE audit ADD COLUMN detail TEXT;
ALTER TABLE audit ADD COLUMN count INTEGER NOT NULL DEFAULT 1;
