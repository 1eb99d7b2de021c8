-- What a run was given: its prompts, and how much of the room its session knew. The messages are in the room.
CREATE TABLE run_contexts (
    run_id  BLOB PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    room_id BLOB NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    context TEXT NOT NULL
) STRICT;
CREATE INDEX run_contexts_by_room ON run_contexts (room_id);
