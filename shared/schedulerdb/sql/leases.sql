-- name: JobsStarted :many
-- A beat lists the attempt as running.
WITH input AS (
    SELECT unnest(@job_ids::uuid[])            AS job_id,
           unnest(@attempts::int[])            AS attempt,
           unnest(@worker_ids::text[])         AS worker_id,
           unnest(@started_ats::timestamptz[]) AS started_at
)
UPDATE jobs
SET status           = 'RUNNING',
    version          = jobs.version + 1,
    lease_expires_at = now() + @lease::interval,
    worker_id        = input.worker_id,
    started_at       = input.started_at,
    updated_at       = now(),
    history          = CASE WHEN jsonb_array_length(jobs.history) < 100 THEN jobs.history ELSE jobs.history - 0 END
                       || jsonb_build_object('at', now(), 'from', jobs.status, 'to', 'RUNNING', 'attempt', jobs.attempt,
                                             'by', 'watchdog', 'workerId', input.worker_id,
                                             'startedAt', input.started_at)
FROM input
WHERE jobs.job_id = input.job_id
  AND jobs.attempt = input.attempt
  AND jobs.status = 'QUEUED'
RETURNING jobs.job_id, jobs.trace_id, jobs.status, jobs.version, jobs.attempt, jobs.retry_count, jobs.due_at,
    jobs.callback_deadline_at, jobs.cancel_requested_at, jobs.last_command, jobs.history, jobs.output, jobs.error_code,
    jobs.error_message, jobs.started_at, jobs.finished_at, jobs.updated_at;

-- name: JobsHeld :execrows
-- A beat lists the attempt. A lease that has long to go is left as it is: one write a few beats.
UPDATE jobs
SET lease_expires_at = now() + @lease::interval,
    worker_id        = input.worker_id
FROM rows from (unnest(@job_ids::uuid[]), unnest(@attempts::int[]), unnest(@worker_ids::text[])) AS input (job_id, attempt, worker_id)
WHERE jobs.job_id = input.job_id
  AND jobs.attempt = input.attempt
  AND jobs.status IN ('QUEUED', 'RUNNING')
  AND (jobs.worker_id IS DISTINCT FROM input.worker_id OR jobs.lease_expires_at < now() + @renew_below::interval);

-- name: JobsAskAgain :many
-- No worker has spoken of the attempt for a lease: the same order again, to another partition. Asking sets the
-- lease anew; the worker's database answers what became of it.
WITH unheard AS (
    SELECT job_id FROM jobs
    WHERE status IN ('QUEUED', 'RUNNING') AND lease_expires_at < now()
    ORDER BY lease_expires_at
    LIMIT @max_jobs::int
    FOR UPDATE SKIP LOCKED
)
UPDATE jobs
SET lease_expires_at = now() + @lease::interval,
    partition        = (jobs.partition + 1 + floor(random() * 11)::int) % 12,
    worker_id        = NULL
FROM unheard
WHERE jobs.job_id = unheard.job_id
  AND jobs.status IN ('QUEUED', 'RUNNING')
RETURNING jobs.job_id, jobs.trace_id, jobs.queue, jobs.job_type, jobs.attempt, jobs.payload, jobs.timeout_ms, jobs.rank,
    jobs.partition, jobs.cancel_requested_at;

-- name: JobsCancelUnanswered :many
-- Cancels that were asked for and not answered, each once in 15 s since it was asked.
SELECT job_id, trace_id, attempt
FROM jobs
WHERE status IN ('QUEUED', 'RUNNING')
  AND cancel_requested_at IS NOT NULL
  AND floor(extract(epoch FROM now() - cancel_requested_at) / 15)
      > floor(extract(epoch FROM now() - cancel_requested_at - @since_last::interval) / 15)
LIMIT @max_jobs::int;
