-- +goose Up
ALTER TABLE jobs
    ADD COLUMN owner_id     text,        -- null: none
    ADD COLUMN lane         text,        -- the controls by job type and owner that it stands under; null: none
    ADD COLUMN blocked_by   text,        -- what keeps it from waiting for room: order or dependency; null: nothing
    ADD COLUMN waits_for    integer,     -- how many of the jobs that have to end first have not; null: none
    ADD COLUMN runs_anyway  boolean,     -- also when one of those did not complete; null: no
    ADD COLUMN ordering_key text,        -- its owner's jobs of one key run one after another
    ADD COLUMN order_number bigint,      -- rises in the order of acceptance
    ADD COLUMN expires_at   timestamptz, -- not started by then: cancelled
    ADD COLUMN deleted_at   timestamptz; -- nobody shall see it any more; what is left fences old events off

-- What stands in no lane and what stands in one, each in the order in which dispatch walks it.
DROP INDEX jobs_pending;
CREATE INDEX jobs_pending ON jobs (queue, rank, job_id)
    WHERE status = 'PENDING' AND blocked_by IS NULL AND lane IS NULL;
CREATE INDEX jobs_laned ON jobs (queue, lane, rank, job_id)
    WHERE status = 'PENDING' AND blocked_by IS NULL AND lane IS NOT NULL;

-- Of one key one job at most has its turn.
CREATE UNIQUE INDEX jobs_turn ON jobs (ordering_key, coalesce(owner_id, ''))
    WHERE ordering_key IS NOT NULL AND blocked_by IS DISTINCT FROM 'order'
      AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');
CREATE INDEX jobs_in_line ON jobs (ordering_key, coalesce(owner_id, ''), order_number) WHERE blocked_by = 'order';

CREATE INDEX jobs_expiring ON jobs (expires_at) WHERE expires_at IS NOT NULL AND status IN ('SCHEDULED', 'PENDING');

-- Which job still waits for the end of which.
CREATE TABLE dependencies (
    after_id uuid NOT NULL,
    job_id   uuid NOT NULL,
    PRIMARY KEY (after_id, job_id)
);
CREATE INDEX dependencies_of ON dependencies (job_id);

-- Which job may not have its turn before which other is known, and all that are to be known before that one. Written
-- under the lock of dispatching only, as dependencies are.
CREATE TABLE order_gaps (
    order_after  uuid NOT NULL,
    job_id       uuid NOT NULL,
    ordering_key text NOT NULL,
    owner_id     text NOT NULL,
    PRIMARY KEY (order_after, job_id)
);
CREATE UNIQUE INDEX order_gaps_of ON order_gaps (job_id);

-- What holds for all jobs of a queue, a job type or an owner.
CREATE TABLE controls (
    kind              text             NOT NULL CHECK (kind IN ('queue', 'type', 'owner')),
    name              text             NOT NULL CHECK (name <> ''),
    version           bigint           NOT NULL CHECK (version > 0),
    paused            boolean          NOT NULL,
    max_running       integer CHECK (max_running >= 0),
    starts_per_second double precision CHECK (starts_per_second > 0),
    PRIMARY KEY (kind, name)
);

-- What few houses need beside the rest of it: what stands under controls, and what waits for other jobs.
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
