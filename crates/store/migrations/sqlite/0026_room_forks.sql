-- Where a room was branched off: the room, and the seq of the last message that was copied.
ALTER TABLE rooms ADD COLUMN forked_room_id BLOB;
ALTER TABLE rooms ADD COLUMN forked_seq INTEGER;
