-- +goose Up
-- The controls of queues, job types and owners. A control that restricts nothing is deleted once the scheduler has
-- applied it.
CREATE TABLE controls (
    kind              text             NOT NULL CHECK (kind IN ('queue', 'type', 'owner')),
    name              text             NOT NULL CHECK (length(name) BETWEEN 1 AND 255),
    version           bigint           NOT NULL,
    paused            boolean          NOT NULL,
    max_running       integer CHECK (max_running >= 0),
    starts_per_second double precision CHECK (starts_per_second > 0),
    applied_version   bigint           NOT NULL DEFAULT 0, -- the version that the scheduler has applied
    updated_at        timestamptz      NOT NULL DEFAULT now(),
    updated_by        text             NOT NULL,
    PRIMARY KEY (kind, name)
);
-- A sequence and not a number in the row: the row may be deleted, and the next control of the same name must still be
-- newer.
CREATE SEQUENCE control_versions;

-- How the job had ended when the latest status arrived; null: it had not ended; '': as that status shows it.
ALTER TABLE jobs ADD COLUMN ended_as text;

-- The counts of the statistics: accepted and ended jobs (n), and the number of ended jobs that still exist (kept; a
-- retry or delete lowers it). Each statement that changes jobs inserts one row for each type and batch, so no
-- transaction waits for another.
CREATE TABLE tally_entries (
    id       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       timestamptz NOT NULL DEFAULT now(),
    queue    text        NOT NULL,
    job_type text        NOT NULL,
    what     text        NOT NULL CHECK (what IN ('ACCEPTED', 'COMPLETED', 'FAILED', 'CANCELLED')),
    n        integer     NOT NULL,
    kept     integer     NOT NULL,
    times    integer[]   NOT NULL DEFAULT '{}' -- three buckets of histograms for each job, see statstore
);

-- The same counts, summed by minute, later by hour and by day; for older times only kept remains.
CREATE TABLE tallies (
    grain    text        NOT NULL CHECK (grain IN ('minute', 'hour', 'day', 'ever')),
    at       timestamptz NOT NULL,
    queue    text        NOT NULL,
    job_type text        NOT NULL,
    what     text        NOT NULL,
    n        bigint      NOT NULL,
    kept     bigint      NOT NULL,
    waited   bytea       NOT NULL DEFAULT '', -- histograms, as varints: from acceptance to start,
    ran      bytea       NOT NULL DEFAULT '', -- from start to end,
    took     bytea       NOT NULL DEFAULT '', -- and from acceptance to end
    PRIMARY KEY (grain, at, queue, job_type, what)
);
INSERT INTO tallies (grain, at, queue, job_type, what, n, kept)
SELECT 'ever', 'epoch', queue, job_type, status, 0, count(*) FROM jobs
WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED') GROUP BY queue, job_type, status;

-- Counts each deletion of a job, whatever statement makes it.
-- +goose StatementBegin
CREATE FUNCTION tally_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tally_entries (queue, job_type, what, n, kept)
    SELECT queue, job_type, status, 0, -count(*) FROM gone
    WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED') GROUP BY queue, job_type, status;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER jobs_deleted AFTER DELETE ON jobs REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION tally_deleted();

-- The last count of jobs that have not ended: one row.
CREATE TABLE job_counts (
    id     boolean     PRIMARY KEY DEFAULT true CHECK (id),
    as_of  timestamptz NOT NULL,
    took   interval    NOT NULL, -- how long the count took
    counts json        NOT NULL
);

-- +goose Down
DROP TABLE job_counts;
DROP TRIGGER jobs_deleted ON jobs;
DROP FUNCTION tally_deleted;
DROP TABLE tallies;
DROP TABLE tally_entries;
ALTER TABLE jobs DROP COLUMN ended_as;
DROP SEQUENCE control_versions;
DROP TABLE controls;
