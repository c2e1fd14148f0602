-- +goose Up
ALTER TABLE jobs ADD COLUMN asked smallint; -- how often its attempt was asked about and nobody answered; null: never
ALTER TABLE workers ADD COLUMN since timestamptz NOT NULL DEFAULT now(); -- when it was first heard

-- The few jobs that have lost their workers twice in a row or more, where they may meet again.
CREATE INDEX jobs_suspects ON jobs (queue)
    WHERE lost_count >= 2 AND status IN ('PENDING', 'QUEUED', 'RUNNING');

-- +goose Down
DROP INDEX jobs_suspects;
ALTER TABLE workers DROP COLUMN since;
ALTER TABLE jobs DROP COLUMN asked;
