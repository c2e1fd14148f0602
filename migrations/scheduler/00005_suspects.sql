-- +goose Up
ALTER TABLE jobs ADD COLUMN asked smallint; -- how often watchdog has asked about its attempt without an answer; null: never
ALTER TABLE workers ADD COLUMN since timestamptz NOT NULL DEFAULT now(); -- the time of its first heartbeat

-- The few jobs that were lost twice or more in a row, and that may meet on a worker again.
CREATE INDEX jobs_suspects ON jobs (queue)
    WHERE lost_count >= 2 AND status IN ('PENDING', 'QUEUED', 'RUNNING');

-- +goose Down
DROP INDEX jobs_suspects;
ALTER TABLE workers DROP COLUMN since;
ALTER TABLE jobs DROP COLUMN asked;
