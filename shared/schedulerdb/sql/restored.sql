-- What is compared and put right after databases were restored, while no function runs. The ledger is not kept: the
-- watchdog counts the rows and enters what differs, and looks for what should have been released.

-- name: RestoredJobs :many
select job_id, version, command_seq, created_at, coalesce(order_number, 0)::bigint as order_number,
       (deleted_at is not null)::boolean as is_deleted
from jobs
where job_id > @after_id::uuid
order by job_id
limit @max_jobs::int;

-- name: RestoredAccepted :one
-- Jobs as the API once accepted them, as far as it is known here.
select coalesce(json_agg(json_build_object(
    'job_id', job_id, 'trace_id', trace_id, 'owner_id', coalesce(owner_id, ''),
    'job_type', coalesce(nullif(job_type, ''), 'UNKNOWN'), 'queue', queue, 'payload', payload, 'priority', priority,
    'max_retry_count', max_retry_count, 'retry_policy', retry_policy, 'timeout_ms', timeout_ms,
    'run_at', case when status = 'SCHEDULED' then due_at end, 'created_at', created_at, 'expires_at', expires_at,
    'ordering_key', ordering_key, 'order_number', order_number, 'command_seq', command_seq)), '[]')::json as jobs
from jobs
where job_id = any (@job_ids::uuid[]) and deleted_at is null;

-- name: RestoredAdopt :many
-- Takes our own word back, as the API has heard it: it is newer than what is here. An attempt that was in flight is
-- asked about at once. Of a key only one job has its turn; what would be a second is left as it is. With the word comes
-- what was asked for, as the API has it: a job may have been changed since.
with input as (
    select unnest(@words::json[])                                              as word,
           unnest(@asked_fors::json[])                                         as asked_for,
           nullif(unnest(@cancel_requested_ats::timestamptz[]), '0001-01-01Z') as cancel_requested_at
), said as (
    select (word ->> 'jobId')::uuid           as job_id,
           (word ->> 'version')::bigint       as version,
           word ->> 'status'                  as status,
           word ->> 'status' in ('COMPLETED', 'FAILED', 'CANCELLED') as has_ended,
           word ->> 'status' in ('QUEUED', 'RUNNING')                as is_out,
           word ->> 'status' in ('SCHEDULED', 'PENDING')             as is_ahead,
           cancel_requested_at,
           asked_for,
           word
    from input
)
update jobs
set status               = said.status,
    version              = said.version,
    attempt              = (word ->> 'attempt')::int,
    retry_count          = (word ->> 'retryCount')::smallint,
    due_at               = case when said.status in ('SCHEDULED', 'RETRYING')
                                then coalesce((word ->> 'nextRunAt')::timestamptz, now())
                                when said.status = 'WAITING' then (word ->> 'callbackDeadlineAt')::timestamptz + @grace::interval end,
    callback_deadline_at = case when said.status = 'WAITING' then (word ->> 'callbackDeadlineAt')::timestamptz end,
    lease_expires_at     = case when said.is_out then now() end,
    partition            = case when said.is_out then coalesce(jobs.partition, 0) end,
    worker_id            = case when said.is_out then null else jobs.worker_id end,
    cancel_requested_at  = case when said.is_out then said.cancel_requested_at end,
    queue                = asked_for ->> 'queue',
    payload              = asked_for -> 'payload',
    priority             = coalesce((asked_for ->> 'priority')::smallint, 0),
    max_retry_count      = (asked_for ->> 'maxRetryCount')::smallint,
    retry_policy         = asked_for -> 'retryPolicy',
    timeout_ms           = (asked_for ->> 'timeoutMs')::int,
    expires_at           = case when (word -> 'history')::text !~ '"from":"(COMPLETED|FAILED|CANCELLED)"'
                                then (asked_for ->> 'expiresAt')::timestamptz end,
    command_seq          = greatest(jobs.command_seq, (word -> 'lastCommand' ->> 'number')::int),
    last_command         = word -> 'lastCommand',
    history              = btrim((word -> 'history')::text, '[] '),
    moves                = json_array_length(word -> 'history'),
    output               = word -> 'output',
    error_code           = word -> 'lastError' ->> 'errorCode',
    error_message        = word -> 'lastError' ->> 'message',
    started_at           = (word ->> 'startedAt')::timestamptz,
    finished_at          = case when said.has_ended then coalesce((word ->> 'finishedAt')::timestamptz, now()) end,
    updated_at           = now(),
    blocked_by           = case when not said.is_ahead then null
                                when jobs.finished_at is not null and jobs.ordering_key is not null then 'order'
                                else jobs.blocked_by end,
    waits_for            = case when said.is_ahead then jobs.waits_for end
from said
where jobs.job_id = said.job_id
  and jobs.version <= said.version
  and jobs.deleted_at is null
  and (jobs.ordering_key is null or said.has_ended or said.is_ahead
       or (jobs.finished_at is null and jobs.blocked_by is distinct from 'order')
       or not exists (select 1 from jobs j
                      where j.ordering_key = jobs.ordering_key and coalesce(j.owner_id, '') = coalesce(jobs.owner_id, '')
                        and j.ordering_key is not null and j.blocked_by is distinct from 'order'
                        and j.status not in ('COMPLETED', 'FAILED', 'CANCELLED')))
returning jobs.job_id;

-- name: RestoredCancel :execrows
-- Jobs that had not ended here, and that the API has no more: as a rule it has deleted them after their end. They stay,
-- so that whoever misses one can have it run again.
update jobs
set status = 'CANCELLED', version = version + 1, finished_at = now(), updated_at = now(), due_at = null,
    callback_deadline_at = null, lease_expires_at = null, partition = null, cancel_requested_at = null,
    blocked_by = null, waits_for = null,
    moves   = least(moves + 1, 100),
    history = case when moves < 100 then history else last_moves(history, 99) end || ',' || json_build_object(
        'at', now(), 'from', status, 'to', 'CANCELLED', 'attempt', attempt, 'by', 'after-restore',
        'reason', 'the API did not have it any more')
where job_id = any (@job_ids::uuid[]) and finished_at is null;
