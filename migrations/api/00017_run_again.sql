-- +goose NO TRANSACTION
-- +goose Up
-- Each statement is its own transaction, so that the index is built while jobs come and go. Each may run again: a
-- migration that was interrupted begins anew.
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS run_again_of uuid; -- the job that this one repeats; null: none

-- With this index the old job shows the newest job that repeats it. Other jobs have no entry, and a deleted job needs
-- no clean-up.
DROP INDEX CONCURRENTLY IF EXISTS jobs_run_again;
CREATE INDEX CONCURRENTLY jobs_run_again ON jobs (run_again_of, job_id) WHERE run_again_of IS NOT NULL;

-- +goose Down
DROP INDEX jobs_run_again;
ALTER TABLE jobs DROP COLUMN run_again_of;
