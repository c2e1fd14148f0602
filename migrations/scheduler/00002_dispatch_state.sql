-- +goose Up
-- The entries of a history, joined by commas, without the brackets of an array, so that an entry is added by appending
-- text.
ALTER TABLE jobs ADD COLUMN moves smallint NOT NULL DEFAULT 1;
UPDATE jobs SET moves = jsonb_array_length(history);
-- +goose StatementBegin
DO $$
DECLARE name text;
BEGIN
    FOR name IN SELECT conname FROM pg_constraint WHERE conrelid = 'jobs'::regclass AND contype = 'c' LOOP
        EXECUTE format('ALTER TABLE jobs DROP CONSTRAINT %I', name);
    END LOOP;
END $$;
-- +goose StatementEnd
ALTER TABLE jobs ALTER COLUMN history DROP DEFAULT;
ALTER TABLE jobs ALTER COLUMN history TYPE text USING btrim(history::text, '[]');

-- There is one CHECK, whose text is in a function: PostgreSQL parses the expression of a CHECK anew for every statement
-- (80 µs for this one, which is nothing for a batch but a lot for a single job), but caches that of a function.
-- COMPLETED keeps the lease and the partition that its attempt had.
-- +goose StatementBegin
CREATE FUNCTION job_is_possible(
    status text, attempt integer, due_at timestamptz, callback_deadline_at timestamptz, lease_expires_at timestamptz,
    partition smallint, cancel_requested_at timestamptz, finished_at timestamptz, error_code text, queue text,
    priority smallint, max_retry_count smallint, retry_count smallint, lost_count smallint, timeout_ms integer,
    version bigint, command_seq integer, moves smallint
) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CASE status
        WHEN 'COMPLETED' THEN attempt > 0 AND finished_at IS NOT NULL AND due_at IS NULL
                              AND callback_deadline_at IS NULL AND cancel_requested_at IS NULL
        WHEN 'QUEUED'    THEN attempt > 0 AND finished_at IS NULL AND due_at IS NULL AND callback_deadline_at IS NULL
                              AND lease_expires_at IS NOT NULL AND partition IS NOT NULL
        WHEN 'RUNNING'   THEN attempt > 0 AND finished_at IS NULL AND due_at IS NULL AND callback_deadline_at IS NULL
                              AND lease_expires_at IS NOT NULL AND partition IS NOT NULL
        WHEN 'PENDING'   THEN finished_at IS NULL AND due_at IS NULL AND callback_deadline_at IS NULL
                              AND lease_expires_at IS NULL AND partition IS NULL AND cancel_requested_at IS NULL
        WHEN 'SCHEDULED' THEN finished_at IS NULL AND due_at IS NOT NULL AND callback_deadline_at IS NULL
                              AND lease_expires_at IS NULL AND partition IS NULL AND cancel_requested_at IS NULL
        WHEN 'RETRYING'  THEN attempt > 0 AND finished_at IS NULL AND due_at IS NOT NULL
                              AND callback_deadline_at IS NULL
                              AND lease_expires_at IS NULL AND partition IS NULL AND cancel_requested_at IS NULL
        WHEN 'WAITING'   THEN attempt > 0 AND finished_at IS NULL AND due_at IS NOT NULL
                              AND callback_deadline_at IS NOT NULL
                              AND lease_expires_at IS NULL AND partition IS NULL AND cancel_requested_at IS NULL
        WHEN 'FAILED'    THEN error_code IS NOT NULL AND finished_at IS NOT NULL AND due_at IS NULL
                              AND callback_deadline_at IS NULL
                              AND lease_expires_at IS NULL AND partition IS NULL AND cancel_requested_at IS NULL
        WHEN 'CANCELLED' THEN finished_at IS NOT NULL AND due_at IS NULL AND callback_deadline_at IS NULL
                              AND lease_expires_at IS NULL AND partition IS NULL AND cancel_requested_at IS NULL
        ELSE false
    END
    AND octet_length(queue) BETWEEN 1 AND 63
    AND priority BETWEEN 0 AND 9
    AND max_retry_count BETWEEN 0 AND 100
    AND retry_count BETWEEN 0 AND max_retry_count
    AND lost_count >= 0
    AND timeout_ms BETWEEN 1 AND 86400000
    AND version > 0
    AND attempt >= 0
    AND command_seq >= 0
    AND moves BETWEEN 1 AND 100;
END $$;
-- +goose StatementEnd
ALTER TABLE jobs ADD CONSTRAINT jobs_possible CHECK (job_is_possible(
    status, attempt, due_at, callback_deadline_at, lease_expires_at, partition, cancel_requested_at, finished_at,
    error_code, queue, priority, max_retry_count, retry_count, lost_count, timeout_ms, version, command_seq, moves));

-- The last entries of a history that is full.
-- +goose StatementBegin
CREATE FUNCTION last_moves(history text, most integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT btrim(jsonb_path_query_array(('[' || $1 || ']')::jsonb, '$[last - $n to last]',
                                        jsonb_build_object('n', $2 - 1))::text, '[]')
$$;
-- +goose StatementEnd

-- The ledger, which dispatching reads instead of counting rows. One row; its lock is the dispatch lock. n grows with
-- each write, so that the index leads to the row's newest version first, however many dead versions a long snapshot
-- keeps.
CREATE TABLE dispatch_state (
    n         bigint PRIMARY KEY,
    in_flight json        NOT NULL, -- queue → the worker that has listed them, or '' → attempts by partition
    floors    json        NOT NULL, -- queue → rank below which no job waits; no entry: no job waits
    due_floor timestamptz           -- no job is due before it; null: no job will be due
);
INSERT INTO dispatch_state VALUES (1, '{}', '{}', null); -- the watchdog counts the existing jobs

-- +goose Down
DROP TABLE dispatch_state;
ALTER TABLE jobs DROP CONSTRAINT jobs_possible;
DROP FUNCTION job_is_possible;
ALTER TABLE jobs ALTER COLUMN history TYPE jsonb USING ('[' || history || ']')::jsonb;
ALTER TABLE jobs ALTER COLUMN history SET DEFAULT '[]';
ALTER TABLE jobs DROP COLUMN moves;
DROP FUNCTION last_moves(text, integer);
UPDATE jobs SET lease_expires_at = null, partition = null WHERE status = 'COMPLETED';
ALTER TABLE jobs
    ADD CHECK (queue ~ '^[a-z0-9-]{1,63}$'),
    ADD CHECK (priority BETWEEN 0 AND 9),
    ADD CHECK (max_retry_count BETWEEN 0 AND 100),
    ADD CHECK (timeout_ms BETWEEN 1 AND 86400000),
    ADD CHECK (status IN ('SCHEDULED', 'PENDING', 'QUEUED', 'RUNNING', 'WAITING', 'RETRYING', 'COMPLETED', 'FAILED',
                          'CANCELLED')),
    ADD CHECK (version > 0),
    ADD CHECK (attempt >= 0),
    ADD CHECK (retry_count >= 0),
    ADD CHECK (lost_count >= 0),
    ADD CHECK (command_seq >= 0),
    ADD CHECK ((status IN ('SCHEDULED', 'RETRYING', 'WAITING')) = (due_at IS NOT NULL)),
    ADD CHECK ((status = 'WAITING') = (callback_deadline_at IS NOT NULL)),
    ADD CHECK ((status IN ('QUEUED', 'RUNNING')) = (lease_expires_at IS NOT NULL)),
    ADD CHECK ((status IN ('QUEUED', 'RUNNING')) = (partition IS NOT NULL)),
    ADD CHECK ((status IN ('COMPLETED', 'FAILED', 'CANCELLED')) = (finished_at IS NOT NULL)),
    ADD CHECK (status NOT IN ('QUEUED', 'RUNNING', 'WAITING', 'RETRYING', 'COMPLETED') OR attempt > 0),
    ADD CHECK (retry_count <= max_retry_count),
    ADD CHECK (cancel_requested_at IS NULL OR status IN ('QUEUED', 'RUNNING')),
    ADD CHECK (jsonb_array_length(history) BETWEEN 1 AND 100),
    ADD CHECK (status <> 'FAILED' OR error_code IS NOT NULL);
