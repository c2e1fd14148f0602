-- +goose Up
-- The jobs that clients requested, with the scheduler's latest status of each.
CREATE TABLE jobs (
    job_id          uuid PRIMARY KEY,                  -- UUIDv7: the key grows at its right edge and orders by age
    owner_id        text        NOT NULL DEFAULT '',
    job_type        text        NOT NULL CHECK (job_type <> ''),
    queue           text        NOT NULL CHECK (queue ~ '^[a-z0-9-]{1,63}$'),
    payload         json        NOT NULL,
    priority        smallint    NOT NULL CHECK (priority BETWEEN 0 AND 9),
    max_retry_count smallint    NOT NULL CHECK (max_retry_count BETWEEN 0 AND 100),
    retry_policy    json,
    timeout_ms      integer     NOT NULL CHECK (timeout_ms BETWEEN 1 AND 86400000),
    run_at          timestamptz,
    tags            text[]      NOT NULL DEFAULT '{}' CHECK (cardinality(tags) <= 16),
    trace_id        uuid        NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    idempotency_key text CHECK (length(idempotency_key) BETWEEN 1 AND 255),
    request_hash    bytea,                             -- of the canonical request, if there is a key
    event_source    text,                              -- of the CloudEvent that submitted it
    event_id        text,
    command_seq     integer     NOT NULL DEFAULT 0 CHECK (command_seq >= 0),
    cancel_requested_at timestamptz,
    -- The following columns have the scheduler's status. Version 0: no status has arrived yet.
    status          text        NOT NULL CHECK (status IN ('SCHEDULED', 'PENDING', 'QUEUED', 'RUNNING', 'WAITING',
                                                           'RETRYING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    version         bigint      NOT NULL DEFAULT 0 CHECK (version >= 0),
    attempt         integer     NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    retry_count     integer     NOT NULL DEFAULT 0 CHECK (retry_count >= 0),
    updated_at      timestamptz NOT NULL DEFAULT now(),
    snapshot        json,                              -- data of the job-status event of this version
    progress        json,                              -- of the running attempt, from heartbeats
    -- The pass of reconcile that visits the row: 0 for jobs without a status, 1 in flight, 2 waiting; null: ended.
    watch           smallint GENERATED ALWAYS AS (
        CASE WHEN status IN ('COMPLETED', 'FAILED', 'CANCELLED') THEN NULL
             WHEN version = 0 THEN 0
             WHEN status IN ('QUEUED', 'RUNNING', 'WAITING') THEN 1
             ELSE 2 END) STORED,
    CHECK ((version = 0) = (snapshot IS NULL)),
    CHECK (version > 0 OR status IN ('SCHEDULED', 'PENDING')),
    CHECK ((idempotency_key IS NULL) = (request_hash IS NULL)),
    CHECK ((event_source IS NULL) = (event_id IS NULL))
) WITH (fillfactor = 85);

CREATE INDEX jobs_watched ON jobs (watch, job_id) WHERE watch IS NOT NULL;
CREATE UNIQUE INDEX jobs_idempotency ON jobs (owner_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
-- Events with the same source and id are the same event, whatever their bodies contain, even another ownerId.
CREATE UNIQUE INDEX jobs_event ON jobs (event_source, event_id) WHERE event_id IS NOT NULL;
CREATE INDEX jobs_failed ON jobs (job_id) WHERE status = 'FAILED';

-- Commands that were answered with 202 and that no job-status has confirmed yet: at most one for each job.
CREATE TABLE commands (
    job_id     uuid PRIMARY KEY REFERENCES jobs ON DELETE CASCADE,
    number     integer     NOT NULL CHECK (number > 0),
    command    text        NOT NULL CHECK (command IN ('cancel', 'retry')),
    by_whom    text        NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE attempt_logs (
    job_id      uuid        NOT NULL,
    attempt     integer     NOT NULL CHECK (attempt > 0),
    first_line  integer     NOT NULL CHECK (first_line >= 0),
    lines       json        NOT NULL,
    received_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job_id, attempt, first_line)
);

-- The workers' latest heartbeats, for the API to show.
CREATE TABLE workers (
    worker_id text PRIMARY KEY,
    seen_at   timestamptz NOT NULL DEFAULT now(),
    beat      json        NOT NULL
);

-- How often a row of this age has become due to be published again: at 10, 20, 40, 80, 160, 300, 600, 900 … s.
CREATE FUNCTION times_due(age interval) RETURNS integer LANGUAGE sql IMMUTABLE
    RETURN width_bucket(date_part('epoch', age), ARRAY[10, 20, 40, 80, 160, 300]::float8[])
         + greatest(floor(date_part('epoch', age) / 300), 0)::integer;

-- +goose Down
DROP FUNCTION times_due;
DROP TABLE workers;
DROP TABLE attempt_logs;
DROP TABLE commands;
DROP TABLE jobs;
