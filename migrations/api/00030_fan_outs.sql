-- +goose NO TRANSACTION
-- +goose Up
-- Each statement is its own transaction, and may run again, as in 00015. A fan-out is a job of a flow that becomes a job
-- for each element of an array: for_each names the array, and elements how many there were, once these jobs exist.
-- fan_out_id and element are of these jobs. All four are null for other jobs.
ALTER TABLE jobs
    ADD COLUMN IF NOT EXISTS for_each json,
    ADD COLUMN IF NOT EXISTS elements integer,
    ADD COLUMN IF NOT EXISTS fan_out_id uuid,
    ADD COLUMN IF NOT EXISTS element integer;

-- The fan-outs that have not ended; the jobs of a fan-out, each element once; and those of them that have not ended.
DROP INDEX CONCURRENTLY IF EXISTS jobs_fan_outs;
CREATE INDEX CONCURRENTLY jobs_fan_outs ON jobs (job_id)
    WHERE for_each IS NOT NULL AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');
DROP INDEX CONCURRENTLY IF EXISTS jobs_elements;
CREATE UNIQUE INDEX CONCURRENTLY jobs_elements ON jobs (fan_out_id, element) WHERE fan_out_id IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS jobs_elements_live;
CREATE INDEX CONCURRENTLY jobs_elements_live ON jobs (fan_out_id)
    WHERE fan_out_id IS NOT NULL AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');

-- +goose Down
DROP INDEX jobs_elements_live, jobs_elements, jobs_fan_outs;
ALTER TABLE jobs DROP COLUMN element, DROP COLUMN fan_out_id, DROP COLUMN elements, DROP COLUMN for_each;
