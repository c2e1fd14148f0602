-- +goose NO TRANSACTION
-- +goose Up
-- What the pull workers of a function pull ask for, as its heartbeat lists it: job types for one owner or for all, and
-- beside it the slots and the rate of each, which change all the time. Null: the worker is no function pull.
ALTER TABLE workers
    ADD COLUMN IF NOT EXISTS demands jsonb,
    ADD COLUMN IF NOT EXISTS rooms   json;

-- The lanes in byte order, so that those of one job type stand together.
DROP INDEX CONCURRENTLY IF EXISTS jobs_by_lane;
CREATE INDEX CONCURRENTLY jobs_by_lane ON jobs (queue, lane COLLATE "C", rank, job_id)
    WHERE status = 'PENDING' AND blocked_by IS NULL AND lane IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS jobs_laned;

-- The lanes in which jobs wait whose type no live worker of the queue runs, and since when that is known.
CREATE TABLE IF NOT EXISTS unserved (
    queue text             NOT NULL,
    lane  text COLLATE "C" NOT NULL,
    since timestamptz      NOT NULL DEFAULT statement_timestamp(),
    PRIMARY KEY (queue, lane)
);
CREATE INDEX IF NOT EXISTS unserved_since ON unserved (since);

-- +goose Down
DROP TABLE unserved;
CREATE INDEX jobs_laned ON jobs (queue, lane, rank, job_id)
    WHERE status = 'PENDING' AND blocked_by IS NULL AND lane IS NOT NULL;
DROP INDEX jobs_by_lane;
ALTER TABLE workers DROP COLUMN demands, DROP COLUMN rooms;
