-- The words of messages, for the search. `search_cursors` says up to which seq the messages of a room are indexed; what is not
-- is indexed in the background.
CREATE TABLE search_entries (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    room_id    BLOB NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    message_id BLOB NOT NULL UNIQUE,
    seq        INTEGER NOT NULL
) STRICT;
CREATE INDEX search_entries_by_room ON search_entries (room_id);

CREATE TABLE search_cursors (
    room_id BLOB PRIMARY KEY REFERENCES rooms (id) ON DELETE CASCADE,
    seq     INTEGER NOT NULL
) STRICT;

-- One row per entry, with the same rowid. The words are split by the server and separated by spaces; anything but ASCII is part of
-- a word. Positions are not stored: nothing asks for them.
CREATE VIRTUAL TABLE search_index USING fts5 (words, detail = 'none', columnsize = 0, tokenize = 'ascii');
-- A deleted row leaves no word in the index.
INSERT INTO search_index (search_index, rank) VALUES ('secure-delete', 1);
