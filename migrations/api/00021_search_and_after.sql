-- +goose NO TRANSACTION
-- +goose Up
-- Each statement is its own transaction, and may run again, as in 00015. Jobs with dependencies, to list those that
-- depend on one job: they have the same owner as that job. Other jobs have no entry. An index of the ids in after_ids
-- would have ten thousand entries for each change of a job with as many.
DROP INDEX CONCURRENTLY IF EXISTS jobs_tied;
CREATE INDEX CONCURRENTLY jobs_tied ON jobs (owner_id, job_id) WHERE after_ids IS NOT NULL;

-- Whether the message of a job's last failure contains a text, encoded as in JSON. It is all that bulk learns of a
-- snapshot, which it may not read. JobsSeen finds the message in the same way.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION failure_has(of_job uuid, wanted text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((
        SELECT position(lower(wanted) IN lower(substring(left(snapshot, 32768)
            FROM '"lastError":\{"errorCode":"(?:[^"\\]|\\.)*","message":"(?!sealed:)((?:[^"\\]|\\.)*)"'))) > 0
        FROM public.jobs WHERE job_id = of_job AND error_code IS NOT NULL
    ), false)
$$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION failure_has FROM PUBLIC;

-- +goose Down
DROP FUNCTION failure_has;
DROP INDEX jobs_tied;
