-- Members and plans refer to rows that exist. SQLite adds a foreign key only to a new table: these two are small, and no
-- other table refers to them.
CREATE TABLE new_members (
    workspace  TEXT NOT NULL REFERENCES workspaces (name),
    user_id    BLOB NOT NULL REFERENCES users (id),
    role       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (workspace, user_id)
) STRICT;
INSERT INTO new_members (workspace, user_id, role, created_at)
SELECT workspace, user_id, role, created_at FROM members
WHERE workspace IN (SELECT name FROM workspaces) AND user_id IN (SELECT id FROM users);
DROP TABLE members;
ALTER TABLE new_members RENAME TO members;

CREATE TABLE new_tapes (
    room_id BLOB PRIMARY KEY REFERENCES rooms (id) ON DELETE CASCADE,
    version INTEGER NOT NULL,
    state   TEXT NOT NULL
) STRICT;
INSERT INTO new_tapes (room_id, version, state)
SELECT room_id, version, state FROM tapes WHERE room_id IN (SELECT id FROM rooms);
DROP TABLE tapes;
ALTER TABLE new_tapes RENAME TO tapes;
