-- +goose Up
-- A command for many jobs: for those on a list, or for all that match a filter.
CREATE TABLE operations (
    operation_id    uuid PRIMARY KEY,                    -- UUIDv7: the key orders by age
    command         text        NOT NULL CHECK (command IN ('cancel', 'retry', 'reschedule', 'delete')),
    run_at          timestamptz,
    by_whom         text        NOT NULL,
    filter          json,
    job_ids         uuid[],                              -- in order; null: those that match the filter
    idempotency_key text UNIQUE,
    request_hash    bytea,                               -- of the request, if there is a key
    created_at      timestamptz NOT NULL DEFAULT now(),
    -- The following columns have its progress.
    status          text        NOT NULL DEFAULT 'RUNNING'
        CHECK (status IN ('RUNNING', 'ABORTING', 'ABORTED', 'COMPLETED')),
    updated_at      timestamptz NOT NULL DEFAULT now(),
    finished_at     timestamptz,
    after_id        uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000', -- the last job that it has reached
    walked          boolean     NOT NULL DEFAULT false,  -- it has reached all jobs
    matched         bigint      NOT NULL DEFAULT 0,
    asked           bigint      NOT NULL DEFAULT 0,      -- jobs for which a command was stored
    applied         bigint      NOT NULL DEFAULT 0,
    refused         bigint      NOT NULL DEFAULT 0,      -- by the scheduler
    skipped         bigint      NOT NULL DEFAULT 0,      -- jobs without a command
    reasons         json        NOT NULL DEFAULT '{}',   -- by reason, how many jobs were refused or skipped
    CHECK ((command = 'reschedule') = (run_at IS NOT NULL)),
    CHECK ((filter IS NULL) <> (job_ids IS NULL)),
    CHECK ((idempotency_key IS NULL) = (request_hash IS NULL)),
    CHECK ((finished_at IS NULL) = (status IN ('RUNNING', 'ABORTING'))),
    CHECK (matched = asked + skipped AND asked >= applied + refused)
);
CREATE INDEX operations_unfinished ON operations (operation_id) WHERE finished_at IS NULL;

-- The first jobs that were refused or skipped.
CREATE TABLE operation_skips (
    operation_id uuid NOT NULL REFERENCES operations ON DELETE CASCADE,
    job_id       uuid NOT NULL,
    reason       text NOT NULL,
    PRIMARY KEY (operation_id, job_id)
);

-- Answers to an operation's commands that it has not counted yet. projection only adds rows when it consumes them: bulk
-- locks the operation's own row together with rows of jobs.
CREATE TABLE operation_answers (
    operation_id uuid   NOT NULL,
    applied      bigint NOT NULL,
    refused_id   uuid,                                   -- the refused job; null: the command was not refused
    reason       text,
    CHECK ((refused_id IS NULL) = (reason IS NULL) AND (refused_id IS NULL) = (applied > 0))
);
CREATE INDEX operation_answers_of ON operation_answers (operation_id);

CREATE INDEX commands_of_operation ON commands (operation_id) WHERE operation_id IS NOT NULL;

-- +goose Down
DROP INDEX commands_of_operation;
DROP TABLE operation_answers;
DROP TABLE operation_skips;
DROP TABLE operations;
