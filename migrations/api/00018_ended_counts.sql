-- +goose Up
-- How many jobs that have ended were kept when the others were counted: both counts together are those of one instant.
-- ended_at is as_of, but where a process of the version before has counted since, which does not know of them.
ALTER TABLE job_counts ADD COLUMN ended json, ADD COLUMN ended_at timestamptz;
ALTER TABLE owner_job_counts ADD COLUMN ended text NOT NULL DEFAULT '[]';

-- +goose Down
ALTER TABLE owner_job_counts DROP COLUMN ended;
ALTER TABLE job_counts DROP COLUMN ended, DROP COLUMN ended_at;
