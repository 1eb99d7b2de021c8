-- A run that an agent started is the child of the run that started it. `root_id` is the first run of the tree; the first
-- run itself has neither. Old runs are all first runs.
ALTER TABLE runs ADD COLUMN parent_id BLOB;
ALTER TABLE runs ADD COLUMN root_id BLOB;
ALTER TABLE runs ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runs_by_parent ON runs (parent_id) WHERE parent_id IS NOT NULL;

-- Each level of a tree has worker slots of its own. `descendants` is how many runs were started below a first run.
ALTER TABLE queue ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queue ADD COLUMN descendants INTEGER NOT NULL DEFAULT 0;

-- The room in which a child works. It is in no list of rooms, and deleted with the room of its parent.
ALTER TABLE rooms ADD COLUMN parent_run_id BLOB;
CREATE INDEX rooms_by_parent_run ON rooms (parent_run_id) WHERE parent_run_id IS NOT NULL;
