-- +goose NO TRANSACTION
-- +goose Up

-- Members of a cohort stay in it while they are out, until they complete.
ALTER TABLE cohorts
    ADD COLUMN IF NOT EXISTS out bigint NOT NULL DEFAULT 0, -- a bit for each place in the arrays: the job is out
    DROP CONSTRAINT IF EXISTS cohorts_possible,
    ADD CONSTRAINT cohorts_possible
        CHECK (waiting | out <> 0 AND waiting & out = 0 AND cardinality(job_ids) BETWEEN 2 AND 64) NOT VALID;
ALTER TABLE cohorts VALIDATE CONSTRAINT cohorts_possible;

-- +goose Down
ALTER TABLE cohorts DROP CONSTRAINT IF EXISTS cohorts_possible, DROP COLUMN IF EXISTS out,
    ADD CONSTRAINT cohorts_possible CHECK (waiting <> 0 AND cardinality(job_ids) BETWEEN 2 AND 64);
