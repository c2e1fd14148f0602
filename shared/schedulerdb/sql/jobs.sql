-- name: JobsKnown :many
-- Of new jobs, those whose event was delivered before. Jobs are inserted only under the lock of the ledger, so the
-- answer stays true. ON CONFLICT DO NOTHING would be no substitute: it waits for a transaction that is updating the
-- row, and that transaction may be waiting for the lock of the ledger.
select job_id from all_jobs where job_id = any (@job_ids::uuid[]);

-- name: JobsInsert :exec
-- Inserts jobs that begin in the same state. A value that all of them share is not an array, and an array that none of
-- them needs is null.
insert into jobs (job_id, trace_id, job_type, queue, payload, spec, status, attempt, rank, due_at, lease_expires_at, partition, history, moves, error_code, error_message,
                  finished_at, created_at, owner_id, blocked_by, waits_for, ordering_key, order_number,
                  lane, expires_at, fairness_key, build, inputs, event, callback_deadline_at, flow_id)
select unnest(@job_ids::uuid[]),
       unnest(@trace_ids::uuid[]),
       unnest(@job_types::text[]),
       unnest(@queues::text[]),
       unnest(@payloads::json[]),
       unnest(@specs::json[]),
       @status::text,
       @attempt::int,
       unnest(@ranks::timestamptz[]),
       unnest(@due_ats::timestamptz[]),
       sqlc.narg('lease_expires_at')::timestamptz,
       unnest(@partitions::smallint[]),
       @history::text,
       1,
       sqlc.narg('error_code')::text,
       sqlc.narg('error_message')::text,
       sqlc.narg('finished_at')::timestamptz,
       unnest(@created_ats::timestamptz[]),
       nullif(unnest(@owner_ids::text[]), ''),
       nullif(unnest(@blocked_bys::text[]), ''),
       nullif(unnest(@waits_fors::int[]), 0),
       nullif(unnest(@ordering_keys::text[]), ''),
       nullif(unnest(@order_numbers::bigint[]), 0),
       nullif(unnest(@lanes::text[]), ''),
       nullif(unnest(@expires_ats::timestamptz[]), '0001-01-01Z'),
       unnest(@fairness_keys::text[]),
       substr(nullif(unnest(@builds::text[]), ''), 2), -- a lone + is an empty build: it keeps the first one
       unnest(@inputs::json[]),
       unnest(@events::json[]),
       sqlc.narg('callback_deadline_at')::timestamptz,
       nullif(unnest(@flow_ids::uuid[]), '00000000-0000-0000-0000-000000000000');

-- name: JobsComplete :many
-- The common case: an attempt completed. The job moves to ended, whatever its state was. A lease shows that the attempt
-- was out: an attempt that waited for a callback has none. Why the rows are found by "any (array[…])": docs/sql.md,
-- "Joins by key".
with input as (
    select unnest(@job_ids::uuid[])            as job_id,
           unnest(@attempts::int[])            as attempt,
           unnest(@entries::text[])            as entry,       -- the end of a transition, after at and from
           unnest(@outputs::json[])            as output,
           unnest(@started_ats::timestamptz[]) as started_at
), completed as (
    delete from jobs
    using input
    where jobs.job_id = any (array[input.job_id])
      and jobs.attempt = input.attempt
      and jobs.status in ('QUEUED', 'RUNNING', 'WAITING')
    returning jobs.job_id, jobs.trace_id, jobs.job_type, jobs.queue, jobs.payload, jobs.spec,
        jobs.version + 1 as version, jobs.attempt, jobs.retry_count, jobs.command_seq,
        case when jobs.cancel_requested_at is null then jobs.last_command
             else json_build_object('number', jobs.command_seq, 'command', 'cancel', 'applied', false,
                                    'reason', 'the attempt had completed') end as last_command,
        history_with(jobs.history, jobs.moves,
            '{"at":' || (select to_json(now())::text) || ',"from":"' || jobs.status || '",' || input.entry, 1) as history,
        least(jobs.moves + 1, 100) as moves, input.output::json as output, -- sqlc needs the cast
        coalesce(nullif(input.started_at, '0001-01-01Z'), jobs.started_at) as started_at, jobs.created_at,
        jobs.owner_id, jobs.ordering_key, jobs.order_number, jobs.expires_at, jobs.fairness_key, jobs.build, jobs.inputs, jobs.event,
        jobs.flow_id, jobs.partition, jobs.worker_id, jobs.lease_expires_at is not null as was_out
), moved as (
    insert into ended (job_id, trace_id, job_type, queue, payload, spec,
                       version, attempt, retry_count, command_seq, last_command, history, moves, output, started_at,
                       finished_at, created_at, updated_at, owner_id, ordering_key, order_number, expires_at,
                       fairness_key, build, inputs, event, flow_id)
    select job_id, trace_id, job_type, queue, payload, spec,
           version, attempt, retry_count, command_seq, last_command, history, moves, output, started_at,
           now(), created_at, now(), owner_id, ordering_key, order_number, expires_at,
           fairness_key, build, inputs, event, flow_id
    from completed
)
select job_id, trace_id, version::bigint as version, attempt, retry_count, last_command::json as last_command,
       history::text as history, started_at, now()::timestamptz as updated_at, queue, partition, worker_id, ordering_key,
       owner_id, job_type, fairness_key, was_out::boolean as was_out
from completed;

-- name: JobsRevive :exec
-- Moves completed jobs back, so that a command can be applied to them. Their new rows can be locked by a later
-- statement. The rows are locked in the order of their ids, as in JobsLock.
with found as (
    select job_id from ended where job_id = any (@job_ids::uuid[]) order by job_id for update
), revived as (
    delete from ended using found where ended.job_id = any (array[found.job_id]) returning ended.*
)
insert into jobs (job_id, trace_id, job_type, queue, payload, spec, status,
                  version, attempt, retry_count, rank, command_seq, last_command, history, moves, output, started_at,
                  finished_at, created_at, updated_at, owner_id, ordering_key, order_number, expires_at, deleted_at,
                  fairness_key, build, inputs, event, flow_id)
select job_id, trace_id, job_type, queue, payload, spec, 'COMPLETED',
       version, attempt, retry_count, finished_at, command_seq, last_command, history, moves, output, started_at,
       finished_at, created_at, updated_at, owner_id, ordering_key, order_number, expires_at, deleted_at,
       fairness_key, build, inputs, event, flow_id
from revived;

-- name: JobsLock :many
-- The columns that decide a job's next state. Rows are locked in the order of their ids, so that batches do not
-- deadlock.
select job_id, status, version, attempt, retry_count, lost_count, spec,
       cancel_requested_at, command_seq, last_command, due_at, callback_deadline_at, queue, rank, partition, worker_id,
       blocked_by, ordering_key, owner_id, started_at, expires_at, deleted_at, job_type, lane, fairness_key, build,
       now()::timestamptz as at
from jobs
where job_id = any (@job_ids::uuid[])
order by job_id
for update;

-- name: JobsSave :many
-- Writes the transitions of locked rows. The version stands for the old state.
with input as (
    select unnest(@job_ids::uuid[])                                             as job_id,
           unnest(@old_versions::bigint[])                                      as old_version,
           unnest(@statuses::text[])                                            as status,
           unnest(@retry_counts::smallint[])                                    as retry_count,
           unnest(@lost_counts::smallint[])                                     as lost_count,
           nullif(unnest(@due_ats::timestamptz[]), '0001-01-01Z')               as due_at,
           nullif(unnest(@callback_deadline_ats::timestamptz[]), '0001-01-01Z') as callback_deadline_at,
           unnest(@cancel_requested::boolean[])                                 as cancel_requested,
           unnest(@command_seqs::int[])                                         as command_seq,
           unnest(@last_commands::json[])                                       as last_command,
           unnest(@ranks::timestamptz[])                                        as rank,
           unnest(@entries::text[])                                             as entries,     -- transitions, joined by commas
           unnest(@moves::smallint[])                                           as moves,       -- how many
           unnest(@outputs::json[])                                             as output,
           nullif(unnest(@error_codes::text[]), '')                             as error_code,
           nullif(unnest(@error_messages::text[]), '')                          as error_message,
           nullif(unnest(@worker_ids::text[]), '')                              as worker_id,
           nullif(unnest(@started_ats::timestamptz[]), '0001-01-01Z')           as started_at,
           nullif(unnest(@blocked_bys::text[]), '')                             as blocked_by
)
update jobs
set status               = input.status,
    version              = jobs.version + 1,
    attempt              = case when input.status = 'WAITING' and jobs.finished_at is not null then jobs.attempt + 1
                                else jobs.attempt end, -- a fan-out is retried
    retry_count          = input.retry_count,
    lost_count           = input.lost_count,
    rank                 = input.rank,
    due_at               = input.due_at,
    callback_deadline_at = input.callback_deadline_at,
    lease_expires_at     = case when input.status in ('QUEUED', 'RUNNING') then jobs.lease_expires_at end,
    partition            = case when input.status in ('QUEUED', 'RUNNING') then jobs.partition end,
    cancel_requested_at  = case when input.cancel_requested then coalesce(jobs.cancel_requested_at, now()) end,
    expires_at           = case when jobs.finished_at is null or input.status in ('COMPLETED', 'FAILED', 'CANCELLED')
                                then jobs.expires_at end, -- a retry removes it
    command_seq          = input.command_seq,
    last_command         = input.last_command,
    output               = coalesce(input.output, jobs.output),
    error_code           = case when input.status <> 'COMPLETED' then coalesce(input.error_code, jobs.error_code) end,
    error_message        = case when input.status <> 'COMPLETED'
                                then case when input.error_code is null then jobs.error_message else input.error_message end end,
    worker_id            = coalesce(input.worker_id, jobs.worker_id),
    started_at           = coalesce(input.started_at, jobs.started_at),
    blocked_by           = input.blocked_by,
    waits_for            = case when input.status not in ('COMPLETED', 'FAILED', 'CANCELLED') then jobs.waits_for end,
    finished_at          = case when input.status in ('COMPLETED', 'FAILED', 'CANCELLED')
                                then coalesce(jobs.finished_at, now()) end,
    updated_at           = now(),
    moves                = least(jobs.moves + input.moves, 100),
    history              = history_with(jobs.history, jobs.moves, input.entries, input.moves)
from input
where jobs.job_id = any (array[input.job_id])
  and jobs.version = input.old_version
returning jobs.job_id, jobs.trace_id, jobs.status, jobs.version, jobs.attempt, jobs.retry_count, jobs.due_at,
    jobs.callback_deadline_at, jobs.cancel_requested_at, jobs.last_command, jobs.history, jobs.output, jobs.error_code,
    jobs.error_message, jobs.started_at, jobs.finished_at, jobs.updated_at, jobs.queue, jobs.rank, jobs.blocked_by,
    jobs.deleted_at, jobs.lane, jobs.fairness_key;

-- name: JobsKeepBuild :exec
-- Notes the build that began an attempt of locked jobs, in whose lanes the jobs wait from now on.
update jobs
set build = input.build,
    lane  = input.lane
from rows from (unnest(@job_ids::uuid[]), unnest(@builds::text[]), unnest(@lanes::text[])) as input (job_id, build, lane)
where jobs.job_id = any (array[input.job_id]);

-- name: JobsChange :exec
-- Writes changed values of jobs that are locked and have not started. The version stands for the old state.
update jobs
set queue           = input.queue,
    payload         = coalesce(input.payload, jobs.payload),
    spec            = input.spec,
    expires_at      = nullif(input.expires_at, '0001-01-01Z')
from (
    select unnest(@job_ids::uuid[])             as job_id,
           unnest(@old_versions::bigint[])      as old_version,
           unnest(@queues::text[])              as queue,
           unnest(@payloads::json[])            as payload,
           unnest(@specs::json[])               as spec,
           unnest(@expires_ats::timestamptz[])  as expires_at
) as input
where jobs.job_id = any (array[input.job_id])
  and jobs.version = input.old_version
  and jobs.attempt = 0;

-- name: JobsDelete :many
-- Reduces an ended job to its tombstone, which keeps old events from bringing it back.
update jobs
set version      = jobs.version + 1,
    command_seq  = input.command_seq,
    deleted_at   = now(),
    payload      = 'null',
    spec         = '{}',
    event        = null,
    output       = null,
    last_command = null,
    moves        = 1,
    history      = input.entry,
    updated_at   = now()
from rows from (unnest(@job_ids::uuid[]), unnest(@command_seqs::int[]), unnest(@entries::text[])) as input (job_id, command_seq, entry)
where jobs.job_id = any (array[input.job_id])
  and jobs.status in ('COMPLETED', 'FAILED', 'CANCELLED')
  and jobs.deleted_at is null
returning jobs.job_id, jobs.trace_id, jobs.status, jobs.version, jobs.attempt, jobs.error_code, jobs.finished_at, jobs.updated_at,
    jobs.deleted_at;

-- name: JobsSnapshot :many
select job_id, trace_id, status, version, attempt, retry_count, due_at,
       callback_deadline_at, cancel_requested_at, last_command, history, output, error_code,
       error_message, started_at, finished_at, updated_at, queue, rank, blocked_by, deleted_at, lane, fairness_key
from all_jobs
where job_id = any (@job_ids::uuid[]);

-- name: JobsNewer :many
-- Of the jobs of a report, those that have a higher version than the API has seen, and those that the scheduler does
-- not know.
select known.job_id::uuid as job_id, known.version::bigint as version, (a.version is null)::boolean as is_unknown
from rows from (unnest(@job_ids::uuid[]), unnest(@versions::bigint[])) as known (job_id, version)
left join lateral (select all_jobs.version from all_jobs where all_jobs.job_id = known.job_id offset 0) a on true
where a.version > known.version or a.version is null and known.version > 0;

-- name: JobsOverdue :many
-- Attempts that wait past the deadline of their callback, and jobs that have not started in time. Only the first due
-- rows are searched: after a long outage a pass must not walk over a million others. Locked rows are left for the next
-- pass: the clock must not wait for a frozen process.
with due as (
    select job_id, status from jobs
    where due_at >= (select due_floor from dispatch_state order by n desc limit 1)
      and due_at <= now()
    order by due_at
    limit @max_jobs::int
), late as (
    select job_id from jobs
    where expires_at >= (select due_floor from dispatch_state order by n desc limit 1)
      and expires_at <= now()
      and status in ('SCHEDULED', 'PENDING')
      and started_at is null
    order by expires_at
    limit @max_jobs::int
)
select jobs.job_id from jobs
where jobs.job_id = any (array(select due.job_id from due where due.status = 'WAITING' union all select late.job_id from late))
for update of jobs skip locked;

-- name: JobsAskAboutCallbacks :many
-- Sets when the API is asked next about attempts that wait past their deadline: the longer it has not answered, the
-- later.
update jobs set
    due_at = now() + least(greatest(now() - callback_deadline_at, interval '10 s'), interval '5 min')
where job_id = any (@job_ids::uuid[]) and status = 'WAITING' and due_at <= now()
returning job_id, due_at::timestamptz as due_at;

-- name: NextDue :many
-- The next instant at which a job is due or expires, and the time at this moment: the transaction may have waited since
-- it began.
select next.due_at::timestamptz as due_at, clock_timestamp()::timestamptz as at
from (
    (select j.due_at from jobs j
     where j.due_at >= @floor::timestamptz
     order by j.due_at
     limit 1)
    union all
    (select j.expires_at from jobs j
     where j.expires_at >= @floor::timestamptz
       and j.status in ('SCHEDULED', 'PENDING')
       and j.started_at is null
     order by j.expires_at
     limit 1)
) next
order by next.due_at
limit 1;

-- name: NotifyDue :exec
-- Wakes the clock. A transaction with NOTIFY takes a lock of the whole server when it commits: a batch sends at most
-- one.
select pg_notify(coalesce(nullif(current_schema(), 'public'), 'jobweaver') || '_due', '');
