-- +goose NO TRANSACTION
-- +goose Up
-- Each statement is its own transaction, and may run again, as in 00015. A batch is many jobs of one owner that end
-- together.
CREATE TABLE IF NOT EXISTS batches (
    batch_id        uuid PRIMARY KEY,                    -- UUIDv7: the key orders by age
    owner_id        text        NOT NULL,
    name            text,
    on_complete     json,                                -- requests of jobs, which may be sealed
    on_failure      json,
    idempotency_key text,
    request_hash    bytea,                               -- of the request, if there is a key
    created_at      timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz,
    -- The following columns have its progress.
    status          text        NOT NULL DEFAULT 'OPEN'
        CHECK (status IN ('OPEN', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')),
    closed_at       timestamptz,
    expired_at      timestamptz,                         -- when its waiting jobs were cancelled
    finished_at     timestamptz,
    round           integer     NOT NULL DEFAULT 0,      -- how often it has been retried after its end
    operation_id    uuid,                                -- the last operation that delays its end
    counts          json,                                -- jobs by state at its end
    follow_up_id    uuid,                                -- the job that was made at its end
    follow_up_error text,                                -- why the job could not be made
    CHECK ((idempotency_key IS NULL) = (request_hash IS NULL)),
    CHECK ((closed_at IS NULL) = (status = 'OPEN')),
    CHECK ((finished_at IS NULL) = (status IN ('OPEN', 'RUNNING')) AND (finished_at IS NULL) = (counts IS NULL)),
    CHECK (finished_at IS NOT NULL OR follow_up_id IS NULL AND follow_up_error IS NULL)
);
CREATE INDEX IF NOT EXISTS batches_of_owner ON batches (owner_id, batch_id);
CREATE INDEX IF NOT EXISTS batches_watched ON batches (batch_id)
    WHERE finished_at IS NULL AND (closed_at IS NOT NULL OR expires_at IS NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS batches_idempotency ON batches (owner_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

-- Deleted jobs of a batch that has not ended. projection only adds rows, as to operation_answers.
CREATE TABLE IF NOT EXISTS batch_deletions (
    batch_id uuid   NOT NULL REFERENCES batches ON DELETE CASCADE,
    status   text   NOT NULL CHECK (status IN ('COMPLETED', 'FAILED', 'CANCELLED')),
    jobs     bigint NOT NULL CHECK (jobs > 0)
);
CREATE INDEX IF NOT EXISTS batch_deletions_of ON batch_deletions (batch_id);

ALTER TABLE jobs ADD COLUMN IF NOT EXISTS batch_id uuid;

-- The jobs of a batch by state: to count them, to find one that has not ended, and to list them. Other jobs have no
-- entry. The state is a column and not shelf_of, or a count would read the jobs and not only the index.
DROP INDEX CONCURRENTLY IF EXISTS jobs_of_batch;
CREATE INDEX CONCURRENTLY jobs_of_batch ON jobs (batch_id, status, job_id) WHERE batch_id IS NOT NULL;

-- +goose Down
DROP INDEX jobs_of_batch;
ALTER TABLE jobs DROP COLUMN batch_id;
DROP TABLE batch_deletions;
DROP TABLE batches;
