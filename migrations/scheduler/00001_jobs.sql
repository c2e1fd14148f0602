-- +goose Up
-- The state of each job and its attempts. One narrow row for each job: one insert and, for a plain job, one update.
CREATE TABLE jobs (
    job_id              uuid PRIMARY KEY,
    trace_id            uuid        NOT NULL,
    job_type            text        NOT NULL,
    queue               text        NOT NULL CHECK (queue ~ '^[a-z0-9-]{1,63}$'), -- names a topic
    payload             json        NOT NULL,
    priority            smallint    NOT NULL CHECK (priority BETWEEN 0 AND 9),
    max_retry_count     smallint    NOT NULL CHECK (max_retry_count BETWEEN 0 AND 100),
    retry_policy        json,                          -- null: the default policy
    timeout_ms          integer     NOT NULL CHECK (timeout_ms BETWEEN 1 AND 86400000),
    status              text        NOT NULL CHECK (status IN ('SCHEDULED', 'PENDING', 'QUEUED', 'RUNNING', 'WAITING',
                                                               'RETRYING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    version             bigint      NOT NULL DEFAULT 1 CHECK (version > 0),
    attempt             integer     NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    retry_count         smallint    NOT NULL DEFAULT 0 CHECK (retry_count >= 0),
    lost_count          smallint    NOT NULL DEFAULT 0 CHECK (lost_count >= 0),
    rank                timestamptz NOT NULL,          -- ready_at − priority · 10 s; the smallest goes first
    due_at              timestamptz,                   -- SCHEDULED, RETRYING: when it may run; WAITING: when to ask the API for the callback
    callback_deadline_at timestamptz,                  -- WAITING: the deadline that the outside system got
    lease_expires_at    timestamptz,                   -- QUEUED, RUNNING: when the worker is asked
    partition           smallint,                      -- of the run-job topic to which the attempt was sent
    worker_id           text,                          -- the worker whose heartbeat listed the attempt
    cancel_requested_at timestamptz,
    command_seq         integer     NOT NULL DEFAULT 0 CHECK (command_seq >= 0),
    last_command        json,
    history             jsonb       NOT NULL DEFAULT '[]',
    output              json,
    error_code          text,
    error_message       text,
    started_at          timestamptz,                   -- of the latest attempt that started
    finished_at         timestamptz,                   -- of the job
    created_at          timestamptz NOT NULL,
    updated_at          timestamptz NOT NULL DEFAULT now(),
    CHECK ((status IN ('SCHEDULED', 'RETRYING', 'WAITING')) = (due_at IS NOT NULL)),
    CHECK ((status = 'WAITING') = (callback_deadline_at IS NOT NULL)),
    CHECK ((status IN ('QUEUED', 'RUNNING')) = (lease_expires_at IS NOT NULL)),
    CHECK ((status IN ('QUEUED', 'RUNNING')) = (partition IS NOT NULL)),
    CHECK ((status IN ('COMPLETED', 'FAILED', 'CANCELLED')) = (finished_at IS NOT NULL)),
    CHECK (status NOT IN ('QUEUED', 'RUNNING', 'WAITING', 'RETRYING', 'COMPLETED') OR attempt > 0),
    CHECK (retry_count <= max_retry_count),
    CHECK (cancel_requested_at IS NULL OR status IN ('QUEUED', 'RUNNING')),
    CHECK (jsonb_array_length(history) BETWEEN 1 AND 100),
    CHECK (status <> 'FAILED' OR error_code IS NOT NULL)
) WITH (fillfactor = 85);

-- Dispatch walks this index in order, whatever the statistics are.
CREATE INDEX jobs_pending ON jobs (queue, rank, job_id) WHERE status = 'PENDING';
CREATE INDEX jobs_in_flight ON jobs (lease_expires_at) WHERE status IN ('QUEUED', 'RUNNING');
CREATE INDEX jobs_due ON jobs (due_at) WHERE due_at IS NOT NULL;

-- The live workers, by their heartbeats.
CREATE TABLE workers (
    worker_id  text PRIMARY KEY,
    partitions json             NOT NULL,              -- queue → partitions of its run-job topic
    slots      integer          NOT NULL CHECK (slots >= 0),
    rate       double precision NOT NULL CHECK (rate >= 0),
    seen_at    timestamptz      NOT NULL DEFAULT now()
);

-- +goose Down
DROP TABLE workers;
DROP TABLE jobs;
