-- Imported skills that no person has accepted yet: what they ask for is off.
CREATE TABLE skill_reviews (
    skill_id   UUID PRIMARY KEY,
    created_at BIGINT NOT NULL
);
