-- A person may pause a room: the worker claims none of its queued runs. A step releases those of one cell.
ALTER TABLE tapes ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tapes ADD COLUMN released_cell INTEGER;
