-- When a token was last shown, to about a minute.
ALTER TABLE tokens ADD COLUMN last_used_at INTEGER;

-- Browsers that are signed in. A visit ends with its token; only the hash of its cookie is kept.
CREATE TABLE visits (
    id         BLOB PRIMARY KEY,
    token_id   BLOB NOT NULL,
    hash       BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX visits_by_token ON visits (token_id, created_at);
CREATE INDEX visits_by_end ON visits (expires_at);

-- Files that people uploaded; their bytes lie in the data folder under their id.
CREATE TABLE uploads (
    id         BLOB PRIMARY KEY,
    owner      TEXT NOT NULL,
    name       TEXT NOT NULL,
    media_type TEXT NOT NULL,
    bytes      INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX uploads_by_owner ON uploads (owner, id);

-- What was said last, as a list of rooms shows it: without it, every such list would read and fold whole answers.
ALTER TABLE rooms ADD COLUMN last_message TEXT;
UPDATE rooms SET last_message = (
    SELECT json_object(
        'seq', m.seq,
        'author', json_extract(m.body, '$.author'),
        'text', COALESCE((
            SELECT substr(group_concat(json_extract(part.value, '$.text'), ''), 1, 200)
            FROM json_each(m.body, '$.parts') AS part WHERE json_extract(part.value, '$.type') = 'text'), ''),
        'at', m.created_at)
    FROM messages m WHERE m.room_id = rooms.id ORDER BY m.seq DESC LIMIT 1);
