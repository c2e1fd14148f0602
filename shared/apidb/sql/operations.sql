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
select pg_notify('jobweaver_operations', '');

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

-- name: OperationAbort :exec
update operations set status = 'ABORTING', updated_at = now()
where operation_id = @operation_id and status = 'RUNNING' and (sqlc.narg('owner')::text is null or owner_id = sqlc.narg('owner'));

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

-- The next jobs of one source in the order of their ids, and which of them match. It looks at max_jobs jobs, however
-- few match. A parameter chooses the source, as in JobsSeen; the other sources read nothing.
-- name: OperationMatches :many
select
    job_id,
    (status = any (@statuses::text[]) and created_at <= @accepted_by::timestamptz
        and (sqlc.narg('job_type')::text is null or job_type = sqlc.narg('job_type'))
        and (sqlc.narg('queue')::text is null or queue = sqlc.narg('queue'))
        and (sqlc.narg('tag')::text is null or sqlc.narg('tag') = any (tags))
        and (sqlc.narg('since')::timestamptz is null or created_at >= sqlc.narg('since'))
        and (sqlc.narg('until')::timestamptz is null or created_at < sqlc.narg('until'))
        and (sqlc.narg('ended_since')::timestamptz is null or status in ('COMPLETED', 'FAILED', 'CANCELLED') and updated_at >= sqlc.narg('ended_since'))
        and (sqlc.narg('ended_until')::timestamptz is null or status in ('COMPLETED', 'FAILED', 'CANCELLED') and updated_at < sqlc.narg('ended_until'))
        and (sqlc.narg('ordering_key')::text is null or ordering_key is not distinct from sqlc.narg('ordering_key'))
        and (sqlc.narg('error_code')::text is null or error_code is not distinct from sqlc.narg('error_code'))
        and (sqlc.narg('trace_id')::uuid is null or trace_id = sqlc.narg('trace_id'))
        and (sqlc.narg('idempotency_key')::text is null or idempotency_key is not distinct from sqlc.narg('idempotency_key'))
        and (sqlc.narg('owner_id')::text is null or owner_id = sqlc.narg('owner_id'))
        and (sqlc.narg('owner')::text is null or owner_id = sqlc.narg('owner'))
        and (sqlc.narg('after')::uuid is null or coalesce(sqlc.narg('after') = any (after_ids), false))
        and (sqlc.narg('batch_id')::uuid is null or batch_id is not distinct from sqlc.narg('batch_id'))
        and (not @no_error_code::boolean or error_code is null)
        and case -- as in JobsSeen
            when sqlc.narg('search')::text is null then true
            when idempotency_key = sqlc.narg('search') then true
            when sqlc.narg('search_id')::uuid is not null then job_id = sqlc.narg('search_id') or trace_id = sqlc.narg('search_id')
            when error_code = sqlc.narg('search') then true
            when sqlc.narg('search_message')::text is null then false
            when sqlc.narg('search') = any (tags) then true
            when error_code is null then false
            else failure_has(job_id, sqlc.narg('search_message'))
        end)::boolean as matches
from (
    (
        select job_id, status, created_at, job_type, queue, tags, ordering_key, error_code, trace_id, idempotency_key, owner_id, after_ids, batch_id, updated_at
        from jobs
        where @by_id::boolean and job_id > @after_id::uuid
        order by job_id limit @max_jobs::int
    )
    union all
    ( -- each shelf in the order of ids: the planner does not know the order of several at once
        select shelved.* from unnest(@by_shelves::int[]) as shelf cross join lateral (
            select job_id, status, created_at, job_type, queue, tags, ordering_key, error_code, trace_id, idempotency_key, owner_id, after_ids, batch_id, updated_at
            from jobs
            where shelf_of(status, version) = shelf and job_id > @after_id
            order by job_id limit @max_jobs
        ) as shelved
        order by shelved.job_id limit @max_jobs
    )
    union all
    ( -- the shelves of one owner, where completed jobs have one, too
        select shelved.* from unnest(@by_owned_shelves::int[]) as shelf cross join lateral (
            select job_id, status, created_at, job_type, queue, tags, ordering_key, error_code, trace_id, idempotency_key, owner_id, after_ids, batch_id, updated_at
            from jobs
            where owner_id = sqlc.narg('owner') and owner_id <> '' and coalesce(shelf_of(status, version), 10::smallint) = shelf
                and job_id > @after_id
            order by job_id limit @max_jobs
        ) as shelved
        order by shelved.job_id limit @max_jobs
    )
    union all
    ( -- the jobs of a fan-out, as in JobsSeen
        select elements.* from (
            select job_id, status, created_at, job_type, queue, tags, ordering_key, error_code, trace_id, idempotency_key, owner_id, after_ids, batch_id, updated_at
            from jobs
            where sqlc.narg('by_fan_out_id')::uuid is not null and fan_out_id = sqlc.narg('by_fan_out_id')
            offset 0
        ) as elements
        where elements.job_id > @after_id
        order by elements.job_id limit @max_jobs
    )
    union all
    ( -- the states of a batch
        select batched.* from unnest(@batch_states::text[]) as state cross join lateral (
            select job_id, status, created_at, job_type, queue, tags, ordering_key, error_code, trace_id, idempotency_key, owner_id, after_ids, batch_id, updated_at
            from jobs
            where batch_id = sqlc.narg('batch_id') and status = state and job_id > @after_id
            order by job_id limit @max_jobs
        ) as batched
        order by batched.job_id limit @max_jobs
    )
) as source
order by job_id
limit @max_jobs;

-- The locks are a statement of their own, so that the statements after it see the latest commits.
-- name: OperationJobsLock :many
select job_id, status, version, trace_id, expires_at, queue from jobs
where job_id = any (@job_ids::uuid[]) and (sqlc.narg('owner')::text is null or owner_id = sqlc.narg('owner'))
order by job_id
for no key update;

-- Stores a command for each job whose state allows it and that has no other command. It does not reschedule a job past
-- its expiry.
-- name: OperationCommandsKeep :many
with numbered as (
    update jobs set
        command_seq = command_seq + 1,
        cancel_requested_at = case when 'cancel' = @command::text then now() else cancel_requested_at end,
        held = case when held then false end -- as in CommandKeep
    where jobs.job_id = any (@job_ids::uuid[]) and jobs.status = any (@allowed::text[])
        and (sqlc.narg('owner')::text is null or owner_id = sqlc.narg('owner'))
        and not exists (select from commands where commands.job_id = jobs.job_id offset 0)
        and (sqlc.narg('run_at')::timestamptz is null or jobs.expires_at is null or jobs.expires_at > sqlc.narg('run_at'))
    returning jobs.job_id, jobs.command_seq
)
insert into commands (job_id, number, command, by_whom, run_at, operation_id)
select numbered.job_id, numbered.command_seq, @command::text, @by_whom::text, sqlc.narg('run_at')::timestamptz,
    @operation_id::uuid
from numbered
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
