-- These statements compare and correct restored databases while no function runs. They do not keep the ledger up to
-- date: the watchdog counts the rows, enters the difference, and looks for jobs that should have been released.

-- name: RestoredJobs :many
select job_id, version, command_seq, created_at, coalesce(order_number, 0)::bigint as order_number,
       (deleted_at is not null)::boolean as is_deleted
from all_jobs
where job_id > @after_id::uuid
order by job_id
limit @max_jobs::int;

-- name: RestoredAccepted :one
-- Jobs as the API accepted them, as far as the scheduler's rows show it.
select coalesce(json_agg(json_build_object(
    'job_id', job_id, 'trace_id', trace_id, 'owner_id', coalesce(owner_id, ''),
    'job_type', coalesce(nullif(job_type, ''), 'UNKNOWN'), 'queue', queue, 'payload', payload, 'spec', spec,
    'run_at', case when status = 'SCHEDULED' then due_at end, 'created_at', created_at, 'expires_at', expires_at,
    'ordering_key', ordering_key, 'order_number', order_number, 'command_seq', command_seq,
    'fairness_key', fairness_key,
    'inputs', inputs, 'event', event, 'flow_id', flow_id)), '[]')::json as jobs
from all_jobs
where job_id = any (@job_ids::uuid[]) and deleted_at is null;

-- name: RestoredAdopt :many
-- Adopts states that the scheduler published before its database was restored, and that the API received: they are newer
-- than the restored rows. The lease of an attempt that was in flight ends now, so that the watchdog asks about it at
-- once. Only one job of an ordering key has the turn: a second one is left as it is.
with published as (
    select (snapshot ->> 'jobId')::uuid     as job_id,
           (snapshot ->> 'version')::bigint as version,
           snapshot ->> 'status'            as status,
           snapshot ->> 'status' in ('COMPLETED', 'FAILED', 'CANCELLED') as has_ended,
           snapshot ->> 'status' in ('QUEUED', 'RUNNING')                as is_out,
           snapshot ->> 'status' in ('SCHEDULED', 'PENDING')             as is_ahead,
           nullif(cancel_requested_at, '0001-01-01Z')                    as cancel_requested_at,
           snapshot
    from rows from (unnest(@snapshots::json[]), unnest(@cancel_requested_ats::timestamptz[])) as input (snapshot, cancel_requested_at)
)
update jobs
set status               = published.status,
    version              = published.version,
    attempt              = (snapshot ->> 'attempt')::int,
    retry_count          = (snapshot ->> 'retryCount')::smallint,
    due_at               = coalesce((snapshot ->> 'nextRunAt')::timestamptz,
                                    (snapshot ->> 'callbackDeadlineAt')::timestamptz + @grace::interval),
    callback_deadline_at = (snapshot ->> 'callbackDeadlineAt')::timestamptz,
    lease_expires_at     = case when published.is_out then now() end,
    partition            = case when published.is_out then coalesce(jobs.partition, 0) end,
    worker_id            = case when not published.is_out then jobs.worker_id end,
    cancel_requested_at  = case when published.is_out then published.cancel_requested_at end,
    error_code           = snapshot -> 'lastError' ->> 'errorCode',
    finished_at          = case when published.has_ended then coalesce((snapshot ->> 'finishedAt')::timestamptz, now()) end,
    blocked_by           = case when not published.is_ahead then null
                                when jobs.finished_at is not null and jobs.ordering_key is not null then 'order'
                                else jobs.blocked_by end,
    waits_for            = case when published.is_ahead then jobs.waits_for end
from published
where jobs.job_id = any (array[published.job_id]) and jobs.version <= published.version and jobs.deleted_at is null
  and (jobs.ordering_key is null or published.has_ended or published.is_ahead
       or not exists (select from jobs j
                      where j.ordering_key = jobs.ordering_key and coalesce(j.owner_id, '') = coalesce(jobs.owner_id, '')
                        and j.ordering_key is not null and j.blocked_by is distinct from 'order'
                        and j.status not in ('COMPLETED', 'FAILED', 'CANCELLED') and j.job_id <> jobs.job_id
                      offset 0))
returning jobs.job_id;

-- name: RestoredFill :exec
-- Fills adopted jobs with what the same statuses have of them, and with their requests, which may have been changed since.
-- A retry has removed the expiry.
update jobs
set queue         = request ->> 'queue',
    payload       = request -> 'payload',
    spec          = request -> 'spec',
    expires_at    = case when (snapshot -> 'history')::text !~ '"from":"(COMPLETED|FAILED|CANCELLED)"'
                         then (request ->> 'expiresAt')::timestamptz end,
    command_seq   = greatest(jobs.command_seq, (snapshot -> 'lastCommand' ->> 'number')::int),
    last_command  = snapshot -> 'lastCommand',
    history       = btrim((snapshot -> 'history')::text, '[] '),
    moves         = json_array_length(snapshot -> 'history'),
    output        = snapshot -> 'output',
    error_message = snapshot -> 'lastError' ->> 'message',
    started_at    = (snapshot ->> 'startedAt')::timestamptz,
    updated_at    = now()
from rows from (unnest(@snapshots::json[]), unnest(@requests::json[])) as input (snapshot, request)
where jobs.job_id = any (array[(snapshot ->> 'jobId')::uuid]) and jobs.job_id = any (@adopted::uuid[]);

-- name: RestoredCancel :execrows
-- Cancels jobs that have not ended in the scheduler's rows and that the API does not have any more: as a rule they were
-- deleted after their end. They are kept, so that an operator who misses one can run it again.
update jobs
set status = 'CANCELLED', version = version + 1, finished_at = now(), updated_at = now(), due_at = null,
    callback_deadline_at = null, lease_expires_at = null, partition = null, cancel_requested_at = null,
    blocked_by = null, waits_for = null,
    moves   = least(moves + 1, 100),
    history = history_with(history, moves, json_build_object(
        'at', now(), 'from', status, 'to', 'CANCELLED', 'attempt', attempt, 'by', 'after-restore',
        'reason', 'the API did not have it any more')::text, 1)
where job_id = any (@job_ids::uuid[]) and finished_at is null;
