-- When a token was last shown, to about a minute.
ALTER TABLE tokens ADD COLUMN last_used_at BIGINT;

-- Browsers that are signed in. A visit ends with its token; only the hash of its cookie is kept.
CREATE TABLE visits (
    id         UUID PRIMARY KEY,
    token_id   UUID NOT NULL,
    hash       BYTEA NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX visits_by_token ON visits (token_id, created_at);
CREATE INDEX visits_by_end ON visits (expires_at);

-- Files that people uploaded; their bytes lie in the data folder under their id.
CREATE TABLE uploads (
    id         UUID PRIMARY KEY,
    owner      TEXT NOT NULL,
    name       TEXT NOT NULL,
    media_type TEXT NOT NULL,
    bytes      BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX uploads_by_owner ON uploads (owner, id);

-- What was said last, as a list of rooms shows it: without it, every such list would read and fold whole answers. JSON with
-- U+0000 in it is nothing that PostgreSQL can take apart: such a message is passed over.
ALTER TABLE rooms ADD COLUMN last_message TEXT;
UPDATE rooms SET last_message = (
    SELECT json_build_object(
        'seq', m.seq,
        'author', m.body::json -> 'author',
        'text', COALESCE((
            SELECT left(string_agg(part ->> 'text', '' ORDER BY n), 200)
            FROM json_array_elements(m.body::json -> 'parts') WITH ORDINALITY AS parts (part, n)
            WHERE part ->> 'type' = 'text'), ''),
        'at', m.created_at)::text
    FROM messages m WHERE m.room_id = rooms.id AND position('\u0000' IN m.body) = 0 ORDER BY m.seq DESC LIMIT 1);
