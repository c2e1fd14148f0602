-- +goose NO TRANSACTION
-- +goose Up
-- Each statement is its own transaction, so that an index is built while jobs come and go. Each may run again: a
-- migration that was interrupted begins anew.
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS error_code text; -- of the last failure that the scheduler has reported; null: none

-- The gateway makes a trace id by the same clock as the ids of the jobs that it accepts a moment later. So jobs with
-- such a trace id are found by their primary key, in 256 ms of jobs: the first 40 bits of a UUIDv7. Only a trace id
-- from elsewhere needs an index. The index uses no function of our own: roles.sql of the previous version would revoke
-- the right to it.
DROP INDEX CONCURRENTLY IF EXISTS jobs_of_trace;
CREATE INDEX CONCURRENTLY jobs_of_trace ON jobs (trace_id, job_id)
    WHERE trace_id >= job_id OR substring(uuid_send(trace_id) FOR 5) <> substring(uuid_send(job_id) FOR 5);

-- Jobs that have failed already: first those that retry, since one may have failed for good by the time of the second
-- walk. In batches, so that no command and no status waits long for a row. lastError comes before the output, so no
-- text in the output can be mistaken for it.
-- +goose StatementBegin
DO $$
DECLARE
    shelf smallint;
    after uuid;
    upto  uuid;
BEGIN
    FOREACH shelf IN ARRAY '{4, 8}'::smallint[] LOOP
        after := '00000000-0000-0000-0000-000000000000';
        LOOP
            SELECT job_id INTO upto FROM jobs
            WHERE shelf_of(status, version) = shelf AND job_id > after ORDER BY job_id OFFSET 4999 LIMIT 1;
            UPDATE jobs SET error_code = left(substring(snapshot FROM '"lastError":\{"errorCode":"([^"\\]+)"'), 255)
            WHERE shelf_of(status, version) = shelf AND error_code IS NULL
                AND job_id > after AND job_id <= coalesce(upto, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
            COMMIT;
            EXIT WHEN upto IS NULL;
            after := upto;
        END LOOP;
    END LOOP;
END $$;
-- +goose StatementEnd
DROP INDEX CONCURRENTLY IF EXISTS jobs_of_error;
CREATE INDEX CONCURRENTLY jobs_of_error ON jobs (error_code, job_id) WHERE error_code IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS jobs_of_owners_error;
CREATE INDEX CONCURRENTLY jobs_of_owners_error ON jobs (owner_id, error_code, job_id)
    WHERE error_code IS NOT NULL AND owner_id <> '';

-- A filter with a field that the previous version of bulk does not know: it would ignore the field and send the command
-- to all other jobs, too. The column filter is then a text, which that version cannot read, so it leaves the operation
-- alone.
ALTER TABLE operations ADD COLUMN IF NOT EXISTS narrow_filter json;

-- +goose Down
ALTER TABLE operations DROP COLUMN narrow_filter;
DROP INDEX jobs_of_owners_error;
DROP INDEX jobs_of_error;
DROP INDEX jobs_of_trace;
ALTER TABLE jobs DROP COLUMN error_code;
