-- +goose Up
-- The attempts that a worker may have open: a row for each of its claims, written with the attempts, and
-- row 0 with those of its last heartbeat, which replaces the claims answered until then. So
-- a silent worker's open attempts are found by their keys, execution_attempts needs no index on what
-- settling changes, and settling is a HOT update.
CREATE TABLE claims (
    worker_id text   NOT NULL,
    number    bigint NOT NULL,  -- 0: of a heartbeat; above: of a claim; below: inserted by another worker
    job_ids   uuid[] NOT NULL,
    attempts  int[]  NOT NULL,
    PRIMARY KEY (worker_id, number),
    CHECK (cardinality(job_ids) = cardinality(attempts))
);
ALTER TABLE claims  -- ids do not compress, and trying costs 50 microseconds for each claim
    ALTER job_ids SET STORAGE EXTERNAL,
    ALTER attempts SET STORAGE EXTERNAL;

-- One CHECK refuses the same rows as the ten before it, which cost a microsecond for each write.
ALTER TABLE execution_attempts
    DROP CONSTRAINT execution_attempts_attempt_check,
    DROP CONSTRAINT execution_attempts_timeout_ms_check,
    DROP CONSTRAINT execution_attempts_outcome_check,
    DROP CONSTRAINT execution_attempts_retry_after_ms_check,
    DROP CONSTRAINT execution_attempts_callback_timeout_ms_check,
    DROP CONSTRAINT execution_attempts_check,
    DROP CONSTRAINT execution_attempts_check1,
    DROP CONSTRAINT execution_attempts_check2,
    DROP CONSTRAINT execution_attempts_check3,
    DROP CONSTRAINT execution_attempts_check4,
    ADD CONSTRAINT execution_attempts_possible CHECK (CASE
        WHEN attempt < 1 OR timeout_ms < 1 OR retry_after_ms < 0 THEN false
        WHEN outcome IS NULL THEN finished_at IS NULL AND output IS NULL AND callback_timeout_ms IS NULL
        WHEN finished_at IS NULL THEN false
        WHEN outcome = 'completed' THEN started_at IS NOT NULL AND callback_timeout_ms IS NULL
        WHEN output IS NOT NULL THEN false
        WHEN outcome = 'waiting' THEN started_at IS NOT NULL AND coalesce(callback_timeout_ms > 0, false)
        WHEN callback_timeout_ms IS NOT NULL THEN false
        WHEN outcome IN ('failed', 'lost') THEN error_code IS NOT NULL
        ELSE outcome IN ('interrupted', 'cancelled', 'snoozed')
    END),
    SET (fillfactor = 40);  -- room for the outcome beside the row

INSERT INTO claims (worker_id, number, job_ids, attempts)
SELECT worker_id, 0, array_agg(job_id), array_agg(attempt)
FROM execution_attempts
WHERE outcome IS NULL
GROUP BY worker_id;

DROP INDEX execution_attempts_open;

-- +goose Down
CREATE INDEX execution_attempts_open ON execution_attempts (worker_id) WHERE outcome IS NULL;
ALTER TABLE execution_attempts
    DROP CONSTRAINT execution_attempts_possible,
    ADD CHECK (attempt > 0),
    ADD CHECK (timeout_ms > 0),
    ADD CHECK (outcome IN ('completed', 'waiting', 'failed', 'lost', 'interrupted', 'cancelled', 'snoozed')),
    ADD CHECK (retry_after_ms >= 0),
    ADD CHECK (callback_timeout_ms > 0),
    ADD CHECK ((outcome IS NULL) = (finished_at IS NULL)),
    ADD CHECK (outcome NOT IN ('completed', 'waiting') OR started_at IS NOT NULL),
    ADD CHECK ((outcome = 'waiting') = (callback_timeout_ms IS NOT NULL)),
    ADD CHECK (output IS NULL OR outcome = 'completed'),
    ADD CHECK (outcome NOT IN ('failed', 'lost') OR error_code IS NOT NULL),
    SET (fillfactor = 85);
DROP TABLE claims;
