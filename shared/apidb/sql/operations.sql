-- name: OperationInsert :many
insert into operations (operation_id, owner_id, command, run_at, by_whom, filter, job_ids, idempotency_key, request_hash)
values (
    @operation_id, sqlc.narg('owner')::text, @command,
    coalesce(sqlc.narg('run_at')::timestamptz, now() + interval '1 ms' * sqlc.narg('delay_ms')::bigint),
    @by_whom, sqlc.narg('filter')::json, sqlc.narg('job_ids')::uuid[], sqlc.narg('idempotency_key'), @request_hash
)
on conflict (owner_id, idempotency_key) where idempotency_key is not null do nothing
returning operation_id;

-- name: OperationOfKey :one
select operation_id, request_hash from operations
where owner_id is not distinct from sqlc.narg('owner')::text and idempotency_key = @idempotency_key::text;

-- name: OperationsWake :exec
select pg_notify(coalesce(nullif(current_schema(), 'public'), 'jobweaver') || '_operations', '');

-- Newest first: the id orders by age.
-- name: OperationsList :many
select
    operation_id, command, run_at, by_whom, filter, coalesce(cardinality(job_ids), 0)::int as listed, created_at, status, updated_at,
    finished_at, walked, matched, asked, applied, refused, skipped, reasons
from operations
where operation_id < @before_id::uuid
order by operation_id desc
limit @max_operations::int;

-- The same for one owner.
-- name: OperationsListOwned :many
select
    operation_id, command, run_at, by_whom, filter, coalesce(cardinality(job_ids), 0)::int as listed, created_at, status, updated_at,
    finished_at, walked, matched, asked, applied, refused, skipped, reasons
from operations
where owner_id = @owner::text and operation_id < @before_id::uuid
order by operation_id desc
limit @max_operations::int;

-- name: OperationByID :one
select
    operation_id, command, run_at, by_whom, filter, coalesce(cardinality(job_ids), 0)::int as listed, created_at, status, updated_at,
    finished_at, walked, matched, asked, applied, refused, skipped, reasons
from operations
where operation_id = @operation_id and (sqlc.narg('owner')::text is null or owner_id = sqlc.narg('owner'));

-- name: OperationSkips :many
select job_id, reason from operation_skips where operation_id = @operation_id order by job_id;

-- name: OperationsEnded :many
select operation_id from operations where operation_id = any (@ids::uuid[]) and finished_at is not null;

-- name: OperationAbort :many
update operations set status = 'ABORTING', updated_at = now()
where operation_id = @operation_id and status = 'RUNNING' and (sqlc.narg('owner')::text is null or owner_id = sqlc.narg('owner'))
returning coalesce(owner_id, '')::text as owner_id;

-- name: OperationsForget :execrows
delete from operations where operation_id < @before_id::uuid and finished_at < @finished_before::timestamptz;

-- Owners take turns. Each owner's operations after the given one come first.
-- name: OperationsUnfinished :many
select operation_id from (
    select operation_id, operation_id <= @after_id::uuid as done_before, row_number() over (
        partition by owner_id order by operation_id <= @after_id, operation_id
    ) as turn
    from operations where finished_at is null
) as unfinished
order by turn, done_before, operation_id
limit @max_operations::int;

-- name: OperationsUnfinishedCount :one
select count(*) from (
    select from operations where finished_at is null and owner_id is not distinct from sqlc.narg('owner')::text limit @most::int
) as few;

-- Locks the operation for the process that works on it. Other processes skip it.
-- name: OperationLock :many
select
    operation_id, owner_id, command, run_at, by_whom, filter, created_at, status, after_id, walked, matched, asked, applied,
    refused, skipped, reasons
from operations
where operation_id = @operation_id and finished_at is null
for no key update skip locked;

-- name: OperationUnanswered :one
select count(*) from (
    select from commands where operation_id = @operation_id::uuid limit @most::int
) as unanswered;

-- Whether an operation, in its first minute, still has to wait for the answers to retries in its batch.
-- name: OperationAwaitsRetries :one
select (
    exists (select from operations where operations.operation_id = @operation_id and created_at > now() - interval '1 min')
    and exists (
        select from jobs where jobs.batch_id = @batch_id::uuid and status in ('FAILED', 'CANCELLED') and exists (
            select from commands where commands.job_id = jobs.job_id and command = 'retry' offset 0
        )
    )
)::boolean as awaits;

-- name: OperationAnswersTake :many
delete from operation_answers where operation_id = @operation_id returning applied, refused_id, reason;

-- The next jobs of the list.
-- name: OperationListed :many
select listed.job_id::uuid as job_id
from (select unnest(job_ids) as job_id from operations where operation_id = @operation_id) as listed
where listed.job_id > @after_id::uuid
order by listed.job_id
limit @max_jobs::int;

-- The locks are a statement of their own, so that the statements after it see the latest commits.
-- name: OperationJobsLock :many
select job_id, status, version, trace_id, expires_at, queue from jobs
where job_id = any (@job_ids::uuid[]) and (sqlc.narg('owner')::text is null or owner_id = sqlc.narg('owner'))
order by job_id
for no key update;

-- Stores a command for each job whose state allows it and that has no other command than a wake, whose place it takes.
-- It does not reschedule a job past its expiry.
-- name: OperationCommandsKeep :many
with numbered as (
    update jobs set
        command_seq = command_seq + 1,
        cancel_requested_at = case when 'cancel' = @command::text then now() else cancel_requested_at end,
        held = case when held then false end -- as in CommandKeep
    where jobs.job_id = any (@job_ids::uuid[]) and jobs.status = any (@allowed::text[])
        and (sqlc.narg('owner')::text is null or owner_id = sqlc.narg('owner'))
        and not exists (
            select from commands
            where commands.job_id = jobs.job_id and not (commands.command = 'reschedule' and commands.by_whom = 'wait') offset 0
        )
        and (sqlc.narg('run_at')::timestamptz is null or jobs.expires_at is null or jobs.expires_at > sqlc.narg('run_at'))
    returning jobs.job_id, jobs.command_seq
)
insert into commands (job_id, number, command, by_whom, run_at, operation_id)
select numbered.job_id, numbered.command_seq, @command::text, @by_whom::text, sqlc.narg('run_at')::timestamptz,
    @operation_id::uuid
from numbered
on conflict (job_id) do update set
    number = excluded.number, command = excluded.command, by_whom = excluded.by_whom, created_at = default, run_at = excluded.run_at,
    operation_id = excluded.operation_id
returning commands.job_id, commands.number;

-- name: CommandsOfJobs :many
select job_id, command from commands where job_id = any (@job_ids::uuid[]);

-- name: OperationAdvance :exec
update operations set
    after_id = @after_id, walked = @walked, matched = @matched, asked = @asked, applied = @applied, refused = @refused,
    skipped = @skipped, reasons = @reasons, status = @status, updated_at = now(),
    finished_at = case when @finished::boolean then now() end
where operation_id = @operation_id;

-- name: OperationSkipsAdd :exec
insert into operation_skips (operation_id, job_id, reason)
select @operation_id::uuid, unnest(@job_ids::uuid[]), unnest(@reasons::text[])
on conflict do nothing;
