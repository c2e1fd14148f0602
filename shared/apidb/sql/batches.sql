-- Returns no row if the idempotency key is known.
-- name: BatchInsert :many
insert into batches (batch_id, owner_id, name, on_complete, on_failure, idempotency_key, request_hash, expires_at, graph)
values (
    @batch_id, @owner_id, sqlc.narg('name'), sqlc.narg('on_complete'), sqlc.narg('on_failure'),
    sqlc.narg('idempotency_key'), @request_hash, sqlc.narg('expires_at'), sqlc.narg('graph')
)
on conflict (owner_id, idempotency_key) where idempotency_key is not null do nothing
returning batch_id;

-- name: BatchOfKey :one
select batch_id, status, request_hash, graph from batches
where owner_id = @owner_id and idempotency_key = @idempotency_key::text;

-- A submit takes shared locks on the batches that its jobs join; a change that ends the joining takes an exclusive
-- lock. These are not row locks: a row lock is granted to ever new sharers while another transaction waits for it
-- exclusively.
-- name: BatchesShare :exec
select pg_advisory_xact_lock_shared(lock) from (select unnest(@locks::bigint[]) as lock order by 1) as ordered;

-- name: BatchHold :exec
select pg_advisory_xact_lock(@lock::bigint);

-- Those of these batches that exist, and whether jobs can join them. It runs after BatchesShare, to see what was
-- committed while that waited.
-- name: BatchesJoined :many
select batch_id, owner_id, (status = 'OPEN' and coalesce(expires_at > now(), true))::boolean as is_open
from batches
where batch_id = any (@batch_ids::uuid[]) and owner_id = any (@owner_ids::text[]);

-- name: BatchClose :execrows
update batches set status = 'RUNNING', closed_at = now()
where batch_id = @batch_id and status = 'OPEN' and (sqlc.narg('owner')::text is null or owner_id = sqlc.narg('owner'));

-- Closes the batch, and marks it as expired.
-- name: BatchExpire :execrows
update batches set status = 'RUNNING', closed_at = coalesce(closed_at, now()), expired_at = now(), retry = null
where batch_id = @batch_id and finished_at is null and expired_at is null and expires_at <= now();

-- Continues a batch after its end. It does not end again before the operation has ended.
-- name: BatchReopen :exec
update batches set
    status = 'RUNNING', finished_at = null, counts = null, follow_up_id = null, follow_up_error = null,
    expires_at = case when expires_at > now() then expires_at end, expired_at = null, round = round + 1,
    operation_id = @operation_id::uuid
where batch_id = @batch_id and finished_at is not null;

-- A flow goes on, or goes on after its end, with some of its jobs to run again.
-- name: FlowRetry :exec
update batches set
    status = 'RUNNING', finished_at = null, counts = null, follow_up_id = null, follow_up_error = null,
    expires_at = case when expires_at > now() then expires_at end, expired_at = null,
    round = case when finished_at is null then round else round + 1 end, retry = @retry::json
where batch_id = @batch_id;

-- Notes which jobs of a flow are still to run again; null: none.
-- name: FlowRetryLeft :exec
update batches set retry = sqlc.narg('retry')::json where batch_id = @batch_id;

-- The jobs of the latest run of a flow, those of elements included. A job whose retry is not answered is about to run.
-- name: FlowJobs :many
select job_id, fan_out_id,
    (case when status in ('FAILED', 'CANCELLED') and exists (
        select from commands where commands.job_id = jobs.job_id and command = 'retry' offset 0
    ) then 'PENDING' else status end)::text as status
from jobs
where jobs.batch_id = @batch_id::uuid and coalesce(jobs.fan_out_id, jobs.job_id) not in (
    select replaced_jobs.job_id from replaced_jobs where replaced_jobs.batch_id = @batch_id
);

-- The states of jobs outside a flow that its jobs come after, in the same way.
-- name: FlowOthers :many
select job_id, (case when status in ('FAILED', 'CANCELLED') and exists (
        select from commands where commands.job_id = jobs.job_id and command = 'retry' offset 0
    ) then 'PENDING' else status end)::text as status
from jobs where job_id = any (@job_ids::uuid[]);

-- Locks jobs that a new run is to replace, so that no client retries them meanwhile.
-- name: FlowJobsLock :many
select job_id from jobs where job_id = any (@job_ids::uuid[]) order by job_id for update;

-- name: FlowRequests :many
select sqlc.embed(jobs) from jobs where job_id = any (@job_ids::uuid[]);

-- Begins another run of a flow, in which the graph has new jobs for some names. What was deleted counts no more.
-- name: FlowRunAgain :exec
with forgotten as (
    delete from batch_deletions where batch_deletions.batch_id = @batch_id
), replaced as (
    insert into replaced_jobs (batch_id, job_id) select @batch_id::uuid, unnest(@replaced::uuid[])
)
update batches set
    status = 'RUNNING', finished_at = null, counts = null, follow_up_id = null, follow_up_error = null,
    expires_at = case when expires_at > now() then expires_at end, expired_at = null,
    round = case when finished_at is null then round else round + 1 end, graph = @graph::json, run = run + 1,
    earlier_runs = @earlier_runs::json
where batches.batch_id = @batch_id;

-- name: BatchDelay :exec
update batches set operation_id = @operation_id::uuid where batch_id = @batch_id;

-- name: BatchByID :one
select sqlc.embed(batches) from batches
where batch_id = @batch_id and (sqlc.narg('owner')::text is null or owner_id = sqlc.narg('owner'));

-- name: BatchHeld :one
select sqlc.embed(batches) from batches
where batch_id = @batch_id and (sqlc.narg('owner')::text is null or owner_id = sqlc.narg('owner'))
for no key update;

-- The jobs of a batch by state, including those that were deleted before its end, without those that a later run of a
-- flow has replaced.
-- name: BatchCounts :many
select status, sum(jobs)::bigint as jobs from (
    select status, count(*) as jobs from jobs where batch_id = @batch_id::uuid group by status
    union all
    select status, jobs from batch_deletions where batch_deletions.batch_id = @batch_id
    union all
    select replaced.status, -count(*) from (
        select jobs.status from replaced_jobs join jobs on jobs.job_id = any (array[replaced_jobs.job_id])
        where replaced_jobs.batch_id = @batch_id
        union all
        select element.status from replaced_jobs cross join lateral (
            select jobs.status from jobs where jobs.fan_out_id = replaced_jobs.job_id offset 0
        ) as element
        where replaced_jobs.batch_id = @batch_id
    ) as replaced
    group by 1
) as counted
group by status;

-- Newest first: the id orders by age.
-- name: BatchesList :many
select batch_id, owner_id, name, created_at, expires_at, status, closed_at, expired_at, finished_at, counts, follow_up_id, follow_up_error
from batches
where batch_id < @before_id::uuid and (sqlc.narg('status')::text is null or status = sqlc.narg('status'))
    and (graph is not null) = @is_flow::boolean
order by batch_id desc
limit @max_batches::int;

-- The same for one owner.
-- name: BatchesListOwned :many
select batch_id, owner_id, name, created_at, expires_at, status, closed_at, expired_at, finished_at, counts, follow_up_id, follow_up_error
from batches
where owner_id = @owner::text and batch_id < @before_id::uuid
    and (sqlc.narg('status')::text is null or status = sqlc.narg('status'))
    and (graph is not null) = @is_flow::boolean
order by batch_id desc
limit @max_batches::int;

-- name: FlowStates :many
select job_id, status, elements, run_again_of from jobs
where batch_id = @batch_id::uuid and fan_out_id is null and job_id not in (
    select replaced_jobs.job_id from replaced_jobs where replaced_jobs.batch_id = @batch_id
);

-- name: BatchesEnded :many
select batch_id from batches where batch_id = any (@ids::uuid[]) and finished_at is not null;

-- The next batches that may end or expire, and which of them must be ended, expired or cancelled now. A batch ends when
-- it is closed and all of its jobs have ended; a single entry of jobs_of_batch shows that one has not.
-- name: BatchesDue :one
with page as materialized (
    select batch_id, closed_at, expires_at, expired_at, operation_id, retry is not null as retries from batches
    where finished_at is null and (closed_at is not null or expires_at is not null) and batch_id > @after_id::uuid
    order by batch_id
    limit @max_batches::int
), looked as (
    select page.batch_id,
        page.expires_at <= now() and page.expired_at is null as expires,
        page.closed_at is not null and not exists (
            select from operations where operations.operation_id = page.operation_id and operations.finished_at is null
        ) and (
            page.retries or page.expired_at is not null and exists (
                select from jobs where jobs.batch_id = page.batch_id
                    and jobs.status in ('SCHEDULED', 'PENDING', 'QUEUED', 'WAITING', 'RETRYING')
            ) or not exists (
                select from jobs where jobs.batch_id = page.batch_id
                    and jobs.status in ('SCHEDULED', 'PENDING', 'QUEUED', 'RUNNING', 'WAITING', 'RETRYING')
            )
        ) as goes_on
    from page
)
select
    array(select batch_id from looked where expires or goes_on order by batch_id)::uuid[] as batch_ids,
    (select count(*) from page)::bigint as seen,
    (select count(*) from page where closed_at is not null)::bigint as closed,
    coalesce((select batch_id from page order by batch_id desc limit 1), @after_id)::uuid as last_id,
    coalesce(extract(epoch from (select min(expires_at) from page where expired_at is null) - now()), 1e9)::float8 as expires_in;

-- Locks a closed batch for the process that ends it. Other processes skip it.
-- name: BatchLock :many
select sqlc.embed(batches) from batches where batch_id = @batch_id and status = 'RUNNING'
for no key update skip locked;

-- Whether an operation delays the end of the batch, whether the batch has a waiting job, and whether it has a job that
-- has not ended or is to run again: of two retries at once only the operation of the later one is known, and the other
-- may have stored the commands. A statement after the lock, so that it sees the latest commits.
-- name: BatchLive :one
select
    exists (
        select from operations where operation_id = sqlc.narg('operation_id')::uuid and finished_at is null
    )::boolean as delayed,
    exists (
        select from jobs where batch_id = @batch_id::uuid and status in ('SCHEDULED', 'PENDING', 'QUEUED', 'WAITING', 'RETRYING')
    )::boolean as waiting,
    (exists (
        select from jobs where batch_id = @batch_id
            and status in ('SCHEDULED', 'PENDING', 'QUEUED', 'RUNNING', 'WAITING', 'RETRYING')
    ) or sqlc.narg('operation_id') is not null and exists (
        select from jobs where batch_id = @batch_id and status in ('FAILED', 'CANCELLED') and exists (
            select from commands where commands.job_id = jobs.job_id and command = 'retry' offset 0
        )
    ))::boolean as live;

-- name: BatchEnd :exec
update batches set
    status = @status, finished_at = now(), counts = @counts::json, follow_up_id = sqlc.narg('follow_up_id')::uuid,
    follow_up_error = sqlc.narg('follow_up_error')::text
where batch_id = @batch_id;

-- name: BatchesChanged :exec
select pg_notify(coalesce(nullif(current_schema(), 'public'), 'jobweaver') || '_schedules', ''); -- wakes cron

-- Deletes the batches that ended too long ago and have no jobs left.
-- name: BatchesExpire :one
with page as (
    select batch_id, status, finished_at from batches
    where batch_id > @after_id::uuid and batch_id < @before_id::uuid
    order by batch_id
    limit @max_batches::int
), gone as (
    delete from batches using page
    where batches.batch_id = any (array[page.batch_id])
        and batches.finished_at < case page.status
            when 'COMPLETED' then sqlc.narg('completed_before')::timestamptz
            when 'CANCELLED' then sqlc.narg('cancelled_before')::timestamptz
            else sqlc.narg('failed_before')::timestamptz
        end
        and not exists (select from jobs where jobs.batch_id = batches.batch_id offset 0)
    returning batches.batch_id
), replaced as (
    delete from replaced_jobs where replaced_jobs.batch_id = any (array(select gone.batch_id from gone))
)
select
    (select count(*) from page)::bigint as seen,
    coalesce((select batch_id from page order by batch_id desc limit 1), @after_id)::uuid as last_id,
    (select count(*) from gone)::bigint as gone;
