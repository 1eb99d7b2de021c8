-- Members and plans refer to rows that exist.
DELETE FROM members
WHERE workspace NOT IN (SELECT name FROM workspaces) OR user_id NOT IN (SELECT id FROM users);
ALTER TABLE members
    ADD FOREIGN KEY (workspace) REFERENCES workspaces (name),
    ADD FOREIGN KEY (user_id) REFERENCES users (id);

DELETE FROM tapes WHERE room_id NOT IN (SELECT id FROM rooms);
ALTER TABLE tapes ADD FOREIGN KEY (room_id) REFERENCES rooms (id) ON DELETE CASCADE;
