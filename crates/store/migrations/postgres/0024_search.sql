-- The words of messages, for the search. `search_cursors` says up to which seq the messages of a room are indexed; what is not
-- is indexed in the background.
CREATE TABLE search_entries (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    room_id    UUID NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    message_id UUID NOT NULL UNIQUE,
    seq        BIGINT NOT NULL,
    words      TSVECTOR NOT NULL
);
CREATE INDEX search_entries_by_room ON search_entries (room_id);
CREATE INDEX search_entries_by_word ON search_entries USING GIN (words);

CREATE TABLE search_cursors (
    room_id UUID PRIMARY KEY REFERENCES rooms (id) ON DELETE CASCADE,
    seq     BIGINT NOT NULL
);
