-- +goose Up
ALTER TABLE jobs
    ADD COLUMN owner_id     text,        -- null: none
    ADD COLUMN lane         text,        -- names the controls of its job type and owner; null: none
    ADD COLUMN blocked_by   text,        -- order or dependency; null: not blocked by either
    ADD COLUMN waits_for    integer,     -- how many of its dependencies have not ended; null: none
    ADD COLUMN runs_anyway  boolean,     -- whether it runs even if one of those did not complete; null: no
    ADD COLUMN ordering_key text,        -- an owner's jobs with the same key run one after another
    ADD COLUMN order_number bigint,      -- rises in the order of acceptance
    ADD COLUMN expires_at   timestamptz, -- cancelled if it has not started by then
    ADD COLUMN deleted_at   timestamptz; -- the API no longer shows it; the row fences off old events

-- Indexes of the jobs without a lane and of those in a lane, in the order in which dispatch walks them.
DROP INDEX jobs_pending;
CREATE INDEX jobs_pending ON jobs (queue, rank, job_id)
    WHERE status = 'PENDING' AND blocked_by IS NULL AND lane IS NULL;
CREATE INDEX jobs_laned ON jobs (queue, lane, rank, job_id)
    WHERE status = 'PENDING' AND blocked_by IS NULL AND lane IS NOT NULL;

-- At most one job of a key has the turn.
CREATE UNIQUE INDEX jobs_turn ON jobs (ordering_key, coalesce(owner_id, ''))
    WHERE ordering_key IS NOT NULL AND blocked_by IS DISTINCT FROM 'order'
      AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');
CREATE INDEX jobs_in_line ON jobs (ordering_key, coalesce(owner_id, ''), order_number) WHERE blocked_by = 'order';

CREATE INDEX jobs_expiring ON jobs (expires_at) WHERE expires_at IS NOT NULL AND status IN ('SCHEDULED', 'PENDING');

-- The dependencies that have not ended.
CREATE TABLE dependencies (
    after_id uuid NOT NULL,
    job_id   uuid NOT NULL,
    PRIMARY KEY (after_id, job_id)
);
CREATE INDEX dependencies_of ON dependencies (job_id);

-- The jobs that may not get the turn before another job of their key has arrived, each with the job that must arrive
-- first. Written under the dispatch lock only, like dependencies.
CREATE TABLE order_gaps (
    order_after  uuid NOT NULL,
    job_id       uuid NOT NULL,
    ordering_key text NOT NULL,
    owner_id     text NOT NULL,
    PRIMARY KEY (order_after, job_id)
);
CREATE UNIQUE INDEX order_gaps_of ON order_gaps (job_id);

-- The controls of queues, job types and owners.
CREATE TABLE controls (
    kind              text             NOT NULL CHECK (kind IN ('queue', 'type', 'owner')),
    name              text             NOT NULL CHECK (name <> ''),
    version           bigint           NOT NULL CHECK (version > 0),
    paused            boolean          NOT NULL,
    max_running       integer CHECK (max_running >= 0),
    starts_per_second double precision CHECK (starts_per_second > 0),
    PRIMARY KEY (kind, name)
);

-- The part of the ledger that few installations need: jobs under controls, and jobs that wait for other jobs.
ALTER TABLE dispatch_state ADD COLUMN more json NOT NULL DEFAULT '{}';

ALTER TABLE jobs ADD CONSTRAINT jobs_blocked CHECK (
    CASE WHEN blocked_by IS NULL THEN true
         ELSE blocked_by IN ('order', 'dependency') AND status IN ('SCHEDULED', 'PENDING') END);

-- +goose Down
ALTER TABLE jobs DROP CONSTRAINT jobs_blocked;
ALTER TABLE dispatch_state DROP COLUMN more;
DROP TABLE controls;
DROP TABLE order_gaps;
DROP TABLE dependencies;
DROP INDEX jobs_pending, jobs_laned, jobs_turn, jobs_in_line, jobs_expiring;
CREATE INDEX jobs_pending ON jobs (queue, rank, job_id) WHERE status = 'PENDING';
ALTER TABLE jobs
    DROP COLUMN deleted_at,
    DROP COLUMN expires_at,
    DROP COLUMN order_number,
    DROP COLUMN ordering_key,
    DROP COLUMN runs_anyway,
    DROP COLUMN waits_for,
    DROP COLUMN blocked_by,
    DROP COLUMN lane,
    DROP COLUMN owner_id;
