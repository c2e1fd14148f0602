-- +goose Up
-- The attempts and their outcomes. The key is that of the run-job event: the worker that inserts the row runs the
-- attempt. One CHECK, because PostgreSQL parses each CHECK anew for every statement that writes a row.
CREATE TABLE execution_attempts (
    job_id              uuid        NOT NULL,
    attempt             integer     NOT NULL,
    trace_id            uuid        NOT NULL,
    queue               text        NOT NULL,
    worker_id           text        NOT NULL,
    timeout_ms          integer     NOT NULL,
    claimed_at          timestamptz NOT NULL DEFAULT now(),
    started_at          timestamptz,
    finished_at         timestamptz,
    outcome             text,
    cancel_wanted       boolean     NOT NULL DEFAULT false, -- read again by the worker that has it
    output              json,
    error_code          text,
    error_message       text,
    retryable           boolean     NOT NULL DEFAULT false,
    retry_after_ms      bigint      NOT NULL DEFAULT 0,
    callback_timeout_ms bigint,
    PRIMARY KEY (job_id, attempt),
    CONSTRAINT execution_attempts_possible CHECK (CASE
        WHEN attempt < 1 OR timeout_ms < 1 OR retry_after_ms < 0 THEN false
        WHEN outcome IS NULL THEN finished_at IS NULL AND output IS NULL AND callback_timeout_ms IS NULL
        WHEN finished_at IS NULL THEN false
        WHEN outcome = 'completed' THEN started_at IS NOT NULL AND callback_timeout_ms IS NULL
        WHEN output IS NOT NULL THEN false
        WHEN outcome = 'waiting' THEN started_at IS NOT NULL AND coalesce(callback_timeout_ms > 0, false)
        WHEN callback_timeout_ms IS NOT NULL THEN false
        WHEN outcome IN ('failed', 'lost') THEN error_code IS NOT NULL
        ELSE outcome IN ('interrupted', 'cancelled', 'snoozed')
    END)
) WITH (fillfactor = 40); -- room for the outcome beside the row

CREATE TABLE workers (
    worker_id  text PRIMARY KEY,                            -- new at each start
    queues     text[]      NOT NULL,
    free       integer     NOT NULL CHECK (free >= 0),      -- free slots, which interrupted attempts may get
    started_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now()
);

-- The attempts that a worker may have open: a row for each of its claims, written with the attempts, and row 0 with those
-- of its last heartbeat, which replaces the claims answered until then. So a silent worker's open attempts are found by
-- their keys, execution_attempts needs no index on what settling changes, and settling is a HOT update.
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

-- What the attempts of a job have saved for its next attempt. A job without a checkpoint has no row, and a job that
-- completes loses its row.
CREATE TABLE checkpoints (
    job_id   uuid        PRIMARY KEY,
    attempt  integer     NOT NULL,                -- that saved it
    number   bigint      NOT NULL,                -- of the save, rising within the attempt
    data     json        NOT NULL,                -- at most 64 KiB before it is sealed
    saved_at timestamptz NOT NULL DEFAULT now()
);

-- +goose Down
DROP TABLE checkpoints, claims, workers, execution_attempts;
