-- name: JobsInsert :many
-- A job that is known already is left as it is: its event was delivered before.
INSERT INTO jobs (job_id, trace_id, job_type, queue, payload, priority, max_retry_count, retry_policy, timeout_ms,
                  status, attempt, rank, due_at, lease_expires_at, partition, history, error_code, error_message,
                  finished_at, created_at)
SELECT unnest(@job_ids::uuid[]),
       unnest(@trace_ids::uuid[]),
       unnest(@job_types::text[]),
       unnest(@queues::text[]),
       unnest(@payloads::json[]),
       unnest(@priorities::smallint[]),
       unnest(@max_retry_counts::smallint[]),
       unnest(@retry_policies::json[]),
       unnest(@timeouts_ms::int[]),
       unnest(@statuses::text[]),
       unnest(@attempts::int[]),
       unnest(@ranks::timestamptz[]),
       nullif(unnest(@due_ats::timestamptz[]), '0001-01-01Z'),
       nullif(unnest(@lease_expires_ats::timestamptz[]), '0001-01-01Z'),
       nullif(unnest(@partitions::smallint[]), -1),
       unnest(@histories::jsonb[]),
       nullif(unnest(@error_codes::text[]), ''),
       nullif(unnest(@error_messages::text[]), ''),
       nullif(unnest(@finished_ats::timestamptz[]), '0001-01-01Z'),
       unnest(@created_ats::timestamptz[])
ON CONFLICT (job_id) DO NOTHING
RETURNING job_id;

-- name: JobsComplete :many
-- The plain way of a job: its attempt completed. One write, no matter what came before.
WITH input AS (
    SELECT unnest(@job_ids::uuid[])            AS job_id,
           unnest(@attempts::int[])            AS attempt,
           unnest(@entries::jsonb[])           AS entry,       -- a Move without at and from
           unnest(@outputs::json[])            AS output,
           unnest(@worker_ids::text[])         AS worker_id,
           unnest(@started_ats::timestamptz[]) AS started_at
)
UPDATE jobs
SET status              = 'COMPLETED',
    version             = jobs.version + 1,
    lease_expires_at    = NULL,
    partition           = NULL,
    due_at              = NULL,
    callback_deadline_at = NULL,
    last_command        = CASE WHEN jobs.cancel_requested_at IS NULL THEN jobs.last_command
                               ELSE json_build_object('number', jobs.command_seq, 'command', 'cancel', 'applied', false,
                                                      'reason', 'the attempt had completed') END,
    cancel_requested_at = NULL,
    output              = input.output,
    error_code          = NULL,
    error_message       = NULL,
    worker_id           = input.worker_id,
    started_at          = input.started_at,
    finished_at         = now(),
    updated_at          = now(),
    history             = CASE WHEN jsonb_array_length(jobs.history) < 100 THEN jobs.history ELSE jobs.history - 0 END
                          || (input.entry || jsonb_build_object('at', now(), 'from', jobs.status))
FROM input
WHERE jobs.job_id = input.job_id
  AND jobs.attempt = input.attempt
  AND jobs.status IN ('QUEUED', 'RUNNING', 'WAITING')
RETURNING jobs.job_id, jobs.trace_id, jobs.status, jobs.version, jobs.attempt, jobs.retry_count, jobs.due_at,
    jobs.callback_deadline_at, jobs.cancel_requested_at, jobs.last_command, jobs.history, jobs.output, jobs.error_code,
    jobs.error_message, jobs.started_at, jobs.finished_at, jobs.updated_at;

-- name: JobsLock :many
-- What decides a job's next state, locked in one order so that batches do not deadlock.
SELECT job_id, status, version, attempt, retry_count, max_retry_count, lost_count, retry_policy, priority,
       cancel_requested_at, command_seq, last_command, due_at, callback_deadline_at, now()::timestamptz AS at
FROM jobs
WHERE job_id = ANY (@job_ids::uuid[])
ORDER BY job_id
FOR UPDATE;

-- name: JobsSave :many
-- Writes the moves that were decided on locked rows; the version is the old state's name.
WITH input AS (
    SELECT unnest(@job_ids::uuid[])                                             AS job_id,
           unnest(@old_versions::bigint[])                                      AS old_version,
           unnest(@statuses::text[])                                            AS status,
           unnest(@retry_counts::smallint[])                                    AS retry_count,
           unnest(@lost_counts::smallint[])                                     AS lost_count,
           nullif(unnest(@due_ats::timestamptz[]), '0001-01-01Z')               AS due_at,
           nullif(unnest(@callback_deadline_ats::timestamptz[]), '0001-01-01Z') AS callback_deadline_at,
           unnest(@cancel_requested::boolean[])                                 AS cancel_requested,
           unnest(@command_seqs::int[])                                         AS command_seq,
           unnest(@last_commands::json[])                                       AS last_command,
           unnest(@entries::jsonb[])                                            AS entries,     -- an array of Moves
           unnest(@outputs::json[])                                             AS output,
           nullif(unnest(@error_codes::text[]), '')                             AS error_code,
           nullif(unnest(@error_messages::text[]), '')                          AS error_message,
           nullif(unnest(@worker_ids::text[]), '')                              AS worker_id,
           nullif(unnest(@started_ats::timestamptz[]), '0001-01-01Z')           AS started_at
)
UPDATE jobs
SET status               = input.status,
    version              = jobs.version + 1,
    retry_count          = input.retry_count,
    lost_count           = input.lost_count,
    rank                 = CASE WHEN input.status = 'PENDING' THEN now() - jobs.priority * interval '10 s' ELSE jobs.rank END,
    due_at               = input.due_at,
    callback_deadline_at = input.callback_deadline_at,
    lease_expires_at     = CASE WHEN input.status IN ('QUEUED', 'RUNNING') THEN jobs.lease_expires_at END,
    partition            = CASE WHEN input.status IN ('QUEUED', 'RUNNING') THEN jobs.partition END,
    cancel_requested_at  = CASE WHEN input.cancel_requested THEN coalesce(jobs.cancel_requested_at, now()) END,
    command_seq          = input.command_seq,
    last_command         = input.last_command,
    output               = coalesce(input.output, jobs.output),
    error_code           = CASE WHEN input.status <> 'COMPLETED' THEN coalesce(input.error_code, jobs.error_code) END,
    error_message        = CASE WHEN input.status <> 'COMPLETED' THEN coalesce(input.error_message, jobs.error_message) END,
    worker_id            = coalesce(input.worker_id, jobs.worker_id),
    started_at           = coalesce(input.started_at, jobs.started_at),
    finished_at          = CASE WHEN input.status IN ('COMPLETED', 'FAILED', 'CANCELLED')
                                THEN coalesce(jobs.finished_at, now()) END,
    updated_at           = now(),
    history              = CASE WHEN jsonb_array_length(jobs.history) + jsonb_array_length(input.entries) <= 100
                                THEN jobs.history || input.entries
                                ELSE jsonb_path_query_array(jobs.history || input.entries, '$[last - 99 to last]') END
FROM input
WHERE jobs.job_id = input.job_id
  AND jobs.version = input.old_version
RETURNING jobs.job_id, jobs.trace_id, jobs.status, jobs.version, jobs.attempt, jobs.retry_count, jobs.due_at,
    jobs.callback_deadline_at, jobs.cancel_requested_at, jobs.last_command, jobs.history, jobs.output, jobs.error_code,
    jobs.error_message, jobs.started_at, jobs.finished_at, jobs.updated_at;

-- name: JobsSnapshot :many
SELECT job_id, trace_id, status, version, attempt, retry_count, due_at,
       callback_deadline_at, cancel_requested_at, last_command, history, output, error_code,
       error_message, started_at, finished_at, updated_at
FROM jobs
WHERE job_id = ANY (@job_ids::uuid[]);

-- name: JobsNewer :many
-- Of the jobs that the API asks about, those that have got further than it knows.
SELECT jobs.job_id
FROM rows from (unnest(@job_ids::uuid[]), unnest(@versions::bigint[])) AS known (job_id, version)
JOIN jobs ON jobs.job_id = known.job_id
WHERE jobs.version > known.version;

-- name: JobsWaitingOverdue :many
-- Callbacks that never came.
SELECT job_id, attempt
FROM jobs
WHERE due_at <= now()
  AND status = 'WAITING'
ORDER BY due_at
LIMIT @max_jobs::int;

-- name: NextDue :many
SELECT due_at::timestamptz AS due_at, now()::timestamptz AS at
FROM jobs
WHERE due_at IS NOT NULL
ORDER BY due_at
LIMIT 1;

-- name: NotifyDue :exec
-- Shortens the sleep of the clock. Every committing NOTIFY takes one lock of the whole server: at most one a batch.
SELECT pg_notify('jobweaver_due', '');
