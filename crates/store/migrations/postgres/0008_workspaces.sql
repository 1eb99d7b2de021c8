-- A workspace owns agents, rooms, skills and the rest; its name is the `owner` of their rows. Until now each owner was one
-- person: each becomes a workspace with one user of the same name, who is its owner. The workspace `local` is the operator's.
CREATE TABLE workspaces (
    name       TEXT PRIMARY KEY,
    created_at BIGINT NOT NULL
);

CREATE TABLE users (
    id         UUID PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    created_at BIGINT NOT NULL
);

CREATE TABLE members (
    workspace  TEXT NOT NULL,
    user_id    UUID NOT NULL,
    role       TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, user_id)
);

INSERT INTO workspaces (name, created_at)
SELECT owner, MIN(created_at) FROM (
    SELECT 'local' AS owner, CAST(EXTRACT(EPOCH FROM now()) * 1000 AS BIGINT) AS created_at
    UNION ALL SELECT owner, created_at FROM tokens
    UNION ALL SELECT owner, created_at FROM agents
    UNION ALL SELECT owner, created_at FROM rooms
    UNION ALL SELECT owner, created_at FROM skills
    UNION ALL SELECT owner, created_at FROM mcp_servers
    UNION ALL SELECT owner, created_at FROM uploads
) AS owners GROUP BY owner;
INSERT INTO users (id, name, created_at)
SELECT CASE name WHEN 'local' THEN CAST('00000000-0000-0000-0000-000000000001' AS UUID) ELSE gen_random_uuid() END, name, created_at
FROM workspaces;
INSERT INTO members (workspace, user_id, role, created_at) SELECT name, id, 'owner', created_at FROM users;

ALTER TABLE tokens ADD COLUMN user_id UUID;
UPDATE tokens SET user_id = (SELECT id FROM users WHERE name = tokens.owner);

-- Who changed what, by which credential. The ids ascend with time.
CREATE TABLE audit (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace     TEXT NOT NULL,
    user_id       UUID,
    role          TEXT NOT NULL,
    credential    TEXT NOT NULL,
    credential_id UUID,
    action        TEXT NOT NULL,
    object        TEXT NOT NULL,
    object_id     TEXT NOT NULL,
    room_id       UUID,
    created_at    BIGINT NOT NULL
);
CREATE INDEX audit_by_workspace ON audit (workspace, id);
