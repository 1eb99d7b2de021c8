-- Requests to an unfinished run: answer an approval, take a message, forget a tool. The server that holds the run carries
-- them out; `outcome` is set in the transaction of what a signal has caused, at the latest by the run's end.
CREATE TABLE signals (
    id         BLOB PRIMARY KEY,
    run_id     BLOB NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    room_id    BLOB NOT NULL,
    kind       TEXT NOT NULL,
    body       TEXT NOT NULL,
    actor      TEXT,
    created_at INTEGER NOT NULL,
    outcome    TEXT,
    settled_at INTEGER
) STRICT;
CREATE INDEX signals_by_run ON signals (run_id);

-- The runs of a cell execute side by side; a run waits for the unfinished runs of lower cells of its room. The number is
-- the seq at which the first run of the cell was queued.
ALTER TABLE queue ADD COLUMN cell INTEGER NOT NULL DEFAULT 0;
UPDATE queue SET cell = queued_seq;

-- The seq of the event that ended the answer's run. NULL for a person's message, and for an answer from before this step.
ALTER TABLE messages ADD COLUMN ended_seq INTEGER;
CREATE INDEX messages_by_end ON messages (room_id, ended_seq) WHERE ended_seq IS NOT NULL;

-- Several agents may answer at the same time. From now on `spoke_seq` is the head when a turn began: the session knows the
-- answers that had ended by then, and its own answer, which begins at `answer_seq`.
ALTER TABLE provider_sessions ADD COLUMN answer_seq INTEGER;

-- What is planned in a room behind the queued runs. No row: nothing. A change names the version that it is based on.
CREATE TABLE tapes (
    room_id BLOB PRIMARY KEY,
    version INTEGER NOT NULL,
    state   TEXT NOT NULL
) STRICT;
