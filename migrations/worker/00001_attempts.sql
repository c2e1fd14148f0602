-- +goose Up
-- The attempts and their outcomes. The key is that of the run-job event: the worker that inserts the row runs the
-- attempt.
CREATE TABLE execution_attempts (
    job_id         uuid        NOT NULL,
    attempt        integer     NOT NULL CHECK (attempt > 0),
    trace_id       uuid        NOT NULL,
    queue          text        NOT NULL,
    worker_id      text        NOT NULL,
    timeout_ms     integer     NOT NULL CHECK (timeout_ms > 0),
    claimed_at     timestamptz NOT NULL DEFAULT now(),
    started_at     timestamptz,
    finished_at    timestamptz,
    outcome        text CHECK (outcome IN ('completed', 'waiting', 'failed', 'lost', 'interrupted', 'cancelled', 'snoozed')),
    cancel_wanted  boolean     NOT NULL DEFAULT false,  -- read again by the worker that has it
    output         json,
    error_code     text,
    error_message  text,
    retryable      boolean     NOT NULL DEFAULT false,
    retry_after_ms bigint      NOT NULL DEFAULT 0 CHECK (retry_after_ms >= 0),
    callback_timeout_ms bigint CHECK (callback_timeout_ms > 0),
    PRIMARY KEY (job_id, attempt),
    CHECK ((outcome IS NULL) = (finished_at IS NULL)),
    CHECK (outcome NOT IN ('completed', 'waiting') OR started_at IS NOT NULL),
    CHECK ((outcome = 'waiting') = (callback_timeout_ms IS NOT NULL)),
    CHECK (output IS NULL OR outcome = 'completed'),
    CHECK (outcome NOT IN ('failed', 'lost') OR error_code IS NOT NULL)
) WITH (fillfactor = 85);

-- The open attempts of a worker: its heartbeat lists them, and another worker reaps them once it is silent.
CREATE INDEX execution_attempts_open ON execution_attempts (worker_id) WHERE outcome IS NULL;

CREATE TABLE workers (
    worker_id  text PRIMARY KEY,                        -- new at each start
    queues     text[]      NOT NULL,
    free       integer     NOT NULL CHECK (free >= 0),  -- free slots, which interrupted attempts may get
    started_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now()
);

-- +goose Down
DROP TABLE workers;
DROP TABLE execution_attempts;
