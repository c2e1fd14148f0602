-- +goose NO TRANSACTION
-- +goose Up
-- Each statement is its own transaction, and may run again, as in 00015. A debounced job is held at first: the scheduler
-- does not know it, and further requests with its key change it. held is true until run_at has passed, false once a
-- command makes the job ready earlier, and null for all other jobs.
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS held boolean, ADD COLUMN IF NOT EXISTS released_at timestamptz;

-- Indexes of the held jobs: to find those that are due, those that a command has made ready, and the one with a key.
DROP INDEX CONCURRENTLY IF EXISTS jobs_held;
CREATE INDEX CONCURRENTLY jobs_held ON jobs (run_at) WHERE held;
DROP INDEX CONCURRENTLY IF EXISTS jobs_unheld;
CREATE INDEX CONCURRENTLY jobs_unheld ON jobs (job_id) WHERE NOT held;
DROP INDEX CONCURRENTLY IF EXISTS jobs_debounced;
CREATE UNIQUE INDEX CONCURRENTLY jobs_debounced ON jobs (owner_id, (policies -> 'debounce' ->> 'key')) WHERE held AND version = 0;

-- The requests with a key or an event that have changed a held job, so that a repeated one changes nothing. identity is a
-- hash of the key or the event.
CREATE TABLE IF NOT EXISTS merged_submits (
    owner_id     text  NOT NULL,
    identity     bytea NOT NULL,
    request_hash bytea,                          -- beside a key
    job_id       uuid  NOT NULL REFERENCES jobs ON DELETE CASCADE,
    PRIMARY KEY (owner_id, identity)
);
CREATE INDEX IF NOT EXISTS merged_submits_of_job ON merged_submits (job_id);

-- +goose Down
DROP TABLE merged_submits;
DROP INDEX jobs_debounced, jobs_unheld, jobs_held;
ALTER TABLE jobs DROP COLUMN released_at, DROP COLUMN held;
