-- +goose Up
ALTER TABLE jobs ADD COLUMN callback_url text; -- where its end is delivered; null: nowhere

-- The outcomes of attempts that outside systems reported, or that follow from a passed deadline: an attempt's first row
-- counts. A row stays as long as its job, so that a repeated callback gets the same answer.
CREATE TABLE callbacks (
    job_id      uuid        NOT NULL REFERENCES jobs ON DELETE CASCADE,
    attempt     integer     NOT NULL CHECK (attempt > 0),
    outcome     text        NOT NULL CHECK (outcome IN ('completed', 'failed')),
    output      json,                                -- null once the scheduler has confirmed it
    error_code  text        NOT NULL DEFAULT '',
    message     text        NOT NULL DEFAULT '',
    retryable   boolean     NOT NULL DEFAULT true,
    body_hash   bytea       NOT NULL,                -- of the callback, to recognize a repeated one; empty: the deadline passed
    received_at timestamptz NOT NULL DEFAULT now(),
    answered_at timestamptz,                         -- when a status of the scheduler first confirmed it
    PRIMARY KEY (job_id, attempt),
    CHECK (outcome = 'failed' OR error_code = '' AND message = '')
);
CREATE INDEX callbacks_unanswered ON callbacks (job_id) WHERE answered_at IS NULL;

-- Whether an attempt is over, by the latest status of its job.
CREATE FUNCTION attempt_is_over(n integer, status text, version bigint, attempt integer) RETURNS boolean LANGUAGE sql IMMUTABLE
    RETURN version > 0 AND (attempt > n OR attempt = n AND status NOT IN ('QUEUED', 'RUNNING', 'WAITING'));

-- Signed messages that were accepted, for as long as their signatures are valid. A message is recognized by its id,
-- content and attempt: different senders may use the same id.
CREATE TABLE webhook_ids (
    message_hash bytea PRIMARY KEY,
    seen_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX webhook_ids_seen ON webhook_ids (seen_at);

-- The ends of jobs that are delivered to their callback_url, one row for each end: a job that was retried by hand has
-- several. A row has everything that its delivery needs, even if the job is changed or deleted.
CREATE TABLE deliveries (
    job_id      uuid        NOT NULL,
    version     bigint      NOT NULL,                -- of the job when it ended
    owner_id    text        NOT NULL,
    job_status  text        NOT NULL CHECK (job_status IN ('COMPLETED', 'FAILED', 'CANCELLED')),
    url         text        NOT NULL,
    host        text        COLLATE "C" NOT NULL GENERATED ALWAYS AS ( -- with its port; deliveries to one host must not hold up the others
        coalesce(lower(substring(url FROM '^[^:]*://([^/?#]+)')), lower(url))) STORED,
    job         json        NOT NULL,                -- its row when it ended, without payload and snapshot
    snapshot    text        NOT NULL,                -- the status with which it ended
    status      text        NOT NULL DEFAULT 'PENDING' CHECK (status IN ('PENDING', 'DELIVERED', 'FAILED')),
    tries       integer     NOT NULL DEFAULT 0 CHECK (tries >= 0),
    next_at     timestamptz DEFAULT now(),           -- of a PENDING one: not before; during a try: when to try again at the latest
    last_try_at timestamptz,
    last_answer integer,                             -- its HTTP status; null: there was none
    last_error  text        NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    PRIMARY KEY (job_id, version),
    CHECK ((status = 'PENDING') = (next_at IS NOT NULL)),
    CHECK ((status = 'PENDING') = (finished_at IS NULL))
);
CREATE INDEX deliveries_due ON deliveries (next_at) WHERE status = 'PENDING';
CREATE INDEX deliveries_due_by_host ON deliveries (host, next_at) WHERE status = 'PENDING';
CREATE INDEX deliveries_by_status ON deliveries (status, job_id, version);
CREATE INDEX deliveries_finished ON deliveries (finished_at) WHERE finished_at IS NOT NULL;

-- +goose Down
DROP TABLE deliveries;
DROP TABLE webhook_ids;
DROP FUNCTION attempt_is_over;
DROP TABLE callbacks;
ALTER TABLE jobs DROP COLUMN callback_url;
