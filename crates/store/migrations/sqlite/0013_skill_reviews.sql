-- Imported skills that no person has accepted yet: what they ask for is off.
CREATE TABLE skill_reviews (
    skill_id   BLOB PRIMARY KEY,
    created_at INTEGER NOT NULL
) STRICT;
