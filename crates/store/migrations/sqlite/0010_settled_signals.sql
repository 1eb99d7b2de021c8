-- Settled signals are deleted after a day; the oldest are found by this index.
CREATE INDEX signals_by_settling ON signals (settled_at) WHERE settled_at IS NOT NULL;
