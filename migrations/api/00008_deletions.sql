-- +goose Up

ALTER FUNCTION delete_with_jobs() RENAME TO delete_what_jobs_have;

-- Log lines may arrive later: LogsExpire deletes those. Ends that are not delivered yet stay. A batch that has not ended
-- goes on counting the jobs.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION delete_what_jobs_have() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ids uuid[] := ARRAY(SELECT job_id FROM gone ORDER BY job_id);
BEGIN
    DELETE FROM public.commands WHERE job_id = ANY (ids);
    DELETE FROM public.callbacks WHERE job_id = ANY (ids);
    DELETE FROM public.merged_submits WHERE job_id = ANY (ids);
    DELETE FROM public.waits WHERE job_id = ANY (ids);
    DELETE FROM public.steps WHERE job_id = ANY (ids);
    DELETE FROM public.attempt_logs WHERE job_id = ANY (ids);
    DELETE FROM public.deliveries
    WHERE job_id = ANY (ARRAY(SELECT job_id FROM gone WHERE callback_url IS NOT NULL)) AND status <> 'PENDING';
    INSERT INTO public.batch_deletions (batch_id, status, jobs)
    SELECT gone.batch_id, CASE WHEN gone.status IN ('COMPLETED', 'FAILED') THEN gone.status ELSE 'CANCELLED' END, count(*)
    FROM gone JOIN public.batches ON batches.batch_id = ANY (ARRAY[gone.batch_id])
    WHERE batches.finished_at IS NULL AND NOT EXISTS ( -- a later run has replaced it
        SELECT FROM public.replaced_jobs
        WHERE replaced_jobs.batch_id = gone.batch_id AND replaced_jobs.job_id = coalesce(gone.fan_out_id, gone.job_id) OFFSET 0
    )
    GROUP BY 1, 2;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose Down
ALTER FUNCTION delete_what_jobs_have() RENAME TO delete_with_jobs;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION delete_with_jobs() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ids uuid[] := ARRAY(SELECT job_id FROM gone ORDER BY job_id);
BEGIN
    DELETE FROM public.commands WHERE job_id = ANY (ids);
    DELETE FROM public.callbacks WHERE job_id = ANY (ids);
    DELETE FROM public.merged_submits WHERE job_id = ANY (ids);
    DELETE FROM public.waits WHERE job_id = ANY (ids);
    DELETE FROM public.steps WHERE job_id = ANY (ids);
    RETURN NULL;
END $$;
-- +goose StatementEnd
