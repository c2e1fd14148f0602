-- name: DispatchLock :one
-- Whoever decides what goes out does so alone, so that what is in flight is counted exactly. Taken last in a
-- transaction, and no row is waited for under it.
SELECT now()::timestamptz AS at, pg_advisory_xact_lock(7305804402557)::text AS locked;

-- name: QueuesPending :many
-- The queues in which a job waits: a loose scan, one step of the index a queue.
WITH RECURSIVE waiting AS (
    (SELECT first.queue AS name FROM jobs first WHERE first.status = 'PENDING' ORDER BY first.queue LIMIT 1)
    UNION ALL
    SELECT (SELECT later.queue FROM jobs later WHERE later.status = 'PENDING' AND later.queue > waiting.name ORDER BY later.queue LIMIT 1)
    FROM waiting
    WHERE waiting.name IS NOT NULL
)
SELECT waiting.name::text AS queue FROM waiting WHERE waiting.name IS NOT NULL;

-- name: InFlight :many
-- What is out, by the worker that has said it holds it, else by the partition it was sent to.
SELECT queue, partition::smallint AS partition, coalesce(worker_id, '')::text AS worker_id, count(*)::int AS attempts
FROM jobs
WHERE status IN ('QUEUED', 'RUNNING')
GROUP BY 1, 2, 3;

-- name: JobsDispatch :many
-- The best of a queue, in the order of the index, each to the partition that Go chose for its place.
WITH best AS (
    SELECT j.job_id, j.rank FROM jobs j
    WHERE j.queue = @queue_name::text AND j.status = 'PENDING'
    ORDER BY j.rank, j.job_id
    LIMIT cardinality(@partitions::smallint[])
    FOR UPDATE SKIP LOCKED
), placed AS (
    SELECT best.job_id, row_number() OVER (ORDER BY best.rank, best.job_id) AS place FROM best
)
UPDATE jobs
SET status           = 'QUEUED',
    version          = jobs.version + 1,
    attempt          = jobs.attempt + 1,
    lease_expires_at = now() + @lease::interval,
    partition        = (@partitions::smallint[])[placed.place],
    worker_id        = NULL,
    updated_at       = now(),
    history          = CASE WHEN jsonb_array_length(jobs.history) < 100 THEN jobs.history ELSE jobs.history - 0 END
                       || jsonb_build_object('at', now(), 'from', 'PENDING', 'to', 'QUEUED', 'attempt', jobs.attempt + 1,
                                             'by', @by_function::text)
FROM placed
WHERE jobs.job_id = placed.job_id
  AND jobs.status = 'PENDING'
RETURNING jobs.job_id, jobs.trace_id, jobs.queue, jobs.job_type, jobs.attempt, jobs.payload, jobs.timeout_ms, jobs.rank,
    jobs.partition, jobs.cancel_requested_at;

-- name: JobsDue :many
-- SCHEDULED and RETRYING jobs whose time has come.
WITH due AS (
    SELECT job_id, due_at FROM jobs
    WHERE due_at <= now() AND status IN ('SCHEDULED', 'RETRYING')
    ORDER BY due_at
    LIMIT @max_jobs::int
    FOR UPDATE SKIP LOCKED
)
UPDATE jobs
SET status     = 'PENDING',
    version    = jobs.version + 1,
    rank       = due.due_at - jobs.priority * interval '10 s',
    due_at     = NULL,
    updated_at = now(),
    history    = CASE WHEN jsonb_array_length(jobs.history) < 100 THEN jobs.history ELSE jobs.history - 0 END
                 || jsonb_build_object('at', now(), 'from', jobs.status, 'to', 'PENDING', 'attempt', jobs.attempt,
                                       'by', 'dispatch', 'reason', 'due')
FROM due
WHERE jobs.job_id = due.job_id
  AND jobs.status IN ('SCHEDULED', 'RETRYING')
RETURNING jobs.job_id;

-- name: JobsRunOrders :many
-- The orders of the attempts that are out, to be said again.
SELECT job_id, trace_id, queue, job_type, attempt, payload, timeout_ms, rank, partition, cancel_requested_at
FROM jobs
WHERE job_id = ANY (@job_ids::uuid[])
  AND status = 'QUEUED';
