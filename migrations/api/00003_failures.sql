-- +goose Up

-- Why jobs are FAILED: one row for each job type and error code, for each owner and for all owners together. projection sums
-- it up from failure_entries. A row outlives its jobs by a month, so that an error that returns does not look new.
CREATE TABLE failures (
    everyone   boolean     NOT NULL,                -- all owners together
    owner_id   text        NOT NULL,
    job_type   text        NOT NULL,
    error_code text        NOT NULL,                -- '': none
    kept       bigint      NOT NULL,                -- jobs that are FAILED now
    first_at   timestamptz NOT NULL,
    last_at    timestamptz NOT NULL,
    last_id    uuid        NOT NULL,                -- the job that failed then
    hours      json        NOT NULL,                -- how many failed in each of the last 48 hours, by hours since 1970
    PRIMARY KEY (everyone, owner_id, job_type, error_code),
    CHECK (NOT everyone OR owner_id = '')
);
CREATE INDEX failures_largest ON failures (everyone, owner_id, kept) WHERE kept > 0;
CREATE INDEX failures_aged ON failures (last_at) WHERE kept <= 0;

-- Each statement that makes jobs FAILED, or ends that, inserts one row for each type, code and hour, so no transaction
-- waits for another. A job that does not fail has no row.
CREATE TABLE failure_entries (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner_id   text        NOT NULL,
    job_type   text        NOT NULL,
    error_code text        NOT NULL,
    kept       integer     NOT NULL,                -- how many more jobs are FAILED
    failed     integer     NOT NULL,                -- how many have failed
    first_at   timestamptz,
    last_at    timestamptz,
    last_id    uuid,
    CHECK ((failed > 0) = (first_at IS NOT NULL) AND (failed > 0) = (last_at IS NOT NULL) AND (failed > 0) = (last_id IS NOT NULL))
);

INSERT INTO failure_entries (owner_id, job_type, error_code, kept, failed, first_at, last_at, last_id)
SELECT owner_id, job_type, coalesce(error_code, ''), count(*), count(*), min(updated_at), max(updated_at),
    (array_agg(job_id ORDER BY updated_at DESC))[1]
FROM jobs WHERE shelf_of(status, version) = 8
GROUP BY owner_id, job_type, coalesce(error_code, ''), date_trunc('hour', updated_at);

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION tally_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tally_entries (owner_id, queue, job_type, what, n, kept)
    SELECT owner_id, queue, job_type, status, 0, -count(*) FROM gone
    WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED') GROUP BY owner_id, queue, job_type, status;
    INSERT INTO failure_entries (owner_id, job_type, error_code, kept, failed)
    SELECT owner_id, job_type, coalesce(error_code, ''), -count(*), 0 FROM gone
    WHERE status = 'FAILED' GROUP BY owner_id, job_type, coalesce(error_code, '');
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION tally_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tally_entries (owner_id, queue, job_type, what, n, kept)
    SELECT owner_id, queue, job_type, status, 0, -count(*) FROM gone
    WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED') GROUP BY owner_id, queue, job_type, status;
    RETURN NULL;
END $$;
-- +goose StatementEnd
DROP TABLE failures, failure_entries;
