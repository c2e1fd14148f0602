-- +goose Up
-- The number of ended jobs at the time of the count of the others, so that both counts are of one instant. ended_at
-- equals as_of unless a process of the previous version, which does not know these columns, has counted since.
ALTER TABLE job_counts ADD COLUMN ended json, ADD COLUMN ended_at timestamptz;
ALTER TABLE owner_job_counts ADD COLUMN ended text NOT NULL DEFAULT '[]';

-- +goose Down
ALTER TABLE owner_job_counts DROP COLUMN ended;
ALTER TABLE job_counts DROP COLUMN ended, DROP COLUMN ended_at;
