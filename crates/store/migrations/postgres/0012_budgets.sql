-- How much the runs of a workspace, a user, an agent or a room may cost in a period. `subject` is the user, agent or room.
CREATE TABLE budgets (
    id          UUID PRIMARY KEY,
    owner       TEXT NOT NULL,
    scope       TEXT NOT NULL,
    subject     UUID,
    period      TEXT NOT NULL,
    limit_nanos BIGINT NOT NULL,
    created_at  BIGINT NOT NULL
);
CREATE INDEX budgets_by_owner ON budgets (owner);

-- The author of a person's message: a run costs the user whose message it answers. NULL for answers, and before this step.
ALTER TABLE messages ADD COLUMN user_id UUID;
