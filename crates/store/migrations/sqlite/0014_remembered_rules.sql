-- What a person has always allowed for one agent in one room: a whole tool, an exact input, or a pattern. `digest` stands for
-- `detail`, which may be too long for an index. Replaces `room_tools`, whose key has no room for more than the tool.
CREATE TABLE remembered_rules (
    room_id    BLOB NOT NULL,
    agent_id   BLOB NOT NULL,
    tool       TEXT NOT NULL,
    scope      TEXT NOT NULL,
    detail     TEXT NOT NULL,
    digest     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (room_id, agent_id, tool, scope, digest)
) STRICT;

INSERT INTO remembered_rules (room_id, agent_id, tool, scope, detail, digest, created_at)
SELECT room_id, agent_id, tool, 'tool', '', '', created_at FROM room_tools;
