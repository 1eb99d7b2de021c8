-- A workspace owns agents, rooms, skills and the rest; its name is the `owner` of their rows. Until now each owner was one
-- person: each becomes a workspace with one user of the same name, who is its owner. The workspace `local` is the operator's.
CREATE TABLE workspaces (
    name       TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE users (
    id         BLOB PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE members (
    workspace  TEXT NOT NULL,
    user_id    BLOB NOT NULL,
    role       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (workspace, user_id)
) STRICT;

INSERT INTO workspaces (name, created_at)
SELECT owner, MIN(created_at) FROM (
    SELECT 'local' AS owner, unixepoch() * 1000 AS created_at
    UNION ALL SELECT owner, created_at FROM tokens
    UNION ALL SELECT owner, created_at FROM agents
    UNION ALL SELECT owner, created_at FROM rooms
    UNION ALL SELECT owner, created_at FROM skills
    UNION ALL SELECT owner, created_at FROM mcp_servers
    UNION ALL SELECT owner, created_at FROM uploads
) GROUP BY owner;
INSERT INTO users (id, name, created_at)
SELECT CASE name WHEN 'local' THEN x'00000000000000000000000000000001' ELSE randomblob(16) END, name, created_at
FROM workspaces;
INSERT INTO members (workspace, user_id, role, created_at) SELECT name, id, 'owner', created_at FROM users;

ALTER TABLE tokens ADD COLUMN user_id BLOB;
UPDATE tokens SET user_id = (SELECT id FROM users WHERE name = tokens.owner);

-- Who changed what, by which credential. The ids ascend with time.
CREATE TABLE audit (
    id            INTEGER PRIMARY KEY,
    workspace     TEXT NOT NULL,
    user_id       BLOB,
    role          TEXT NOT NULL,
    credential    TEXT NOT NULL,
    credential_id BLOB,
    action        TEXT NOT NULL,
    object        TEXT NOT NULL,
    object_id     TEXT NOT NULL,
    room_id       BLOB,
    created_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX audit_by_workspace ON audit (workspace, id);
