-- +goose Up

-- The ids of deleted jobs, for as long as the scheduler may keep their tombstones: it would delete a new job with such an
-- id at once.
CREATE TABLE deleted_jobs (
    job_id     uuid PRIMARY KEY,
    deleted_at timestamptz NOT NULL DEFAULT now()
);

-- +goose Down
DROP TABLE deleted_jobs;
