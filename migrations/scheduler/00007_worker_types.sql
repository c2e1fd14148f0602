-- +goose Up
-- The job types that a worker runs, as its heartbeat lists them. Null, or null in JSON: it runs any.
ALTER TABLE workers ADD COLUMN IF NOT EXISTS job_types jsonb;

-- +goose Down
ALTER TABLE workers DROP COLUMN job_types;
