-- Fan-outs: jobs of flows that become a job for each element of an array.

-- The next fan-outs that have not ended, and whether there is something to do: their jobs must be made, because all
-- dependencies have ended; or all of these jobs have ended. An outcome that is kept is published until it is confirmed.
-- name: FanOutsLive :many
select live.job_id, (live.elements is not null)::boolean as expanded,
    (live.cancel_requested_at is null
        and case when live.elements is null then not exists (
                select from unnest(live.after_ids) as after_id join jobs on jobs.job_id = any (array[after_id])
                where jobs.status not in ('COMPLETED', 'FAILED', 'CANCELLED')
            ) else not exists (
                select from jobs
                where jobs.fan_out_id = live.job_id and jobs.status not in ('COMPLETED', 'FAILED', 'CANCELLED')
            ) end
        and not exists (
            select from callbacks where callbacks.job_id = live.job_id and callbacks.attempt >= greatest(live.attempt, 1)
        ))::boolean as due
from jobs as live
where live.for_each is not null and live.status not in ('COMPLETED', 'FAILED', 'CANCELLED') and live.job_id > @after_id::uuid
order by live.job_id
limit @max_jobs::int;

-- Keeps other processes away from a fan-out until the end of the transaction. It is not a row lock: a status of the
-- fan-out that arrives meanwhile must not wait until thousands of jobs are inserted.
-- name: FanOutTry :one
select pg_try_advisory_xact_lock(@lock::bigint)::boolean as taken;

-- name: FanOutRead :one
select sqlc.embed(jobs), now()::timestamptz as at from jobs
where job_id = @job_id and for_each is not null and status not in ('COMPLETED', 'FAILED', 'CANCELLED');

-- name: FanOutParents :many
select job_id, status, snapshot from jobs where job_id = any (@job_ids::uuid[]);

-- name: BatchUnfinished :one
select count(*) from batches where batch_id = @batch_id and finished_at is null;

-- Notes that the jobs of a fan-out exist. A fan-out that has ended meanwhile gets none.
-- name: FanOutExpanded :execrows
update jobs set elements = @elements::int
where job_id = @job_id and elements is null and cancel_requested_at is null
    and status not in ('COMPLETED', 'FAILED', 'CANCELLED');

-- The ends of the jobs of a fan-out, and the first element whose job did not complete; -1: none.
-- name: FanOutEnds :one
select
    count(*) filter (where status = 'FAILED')::bigint as failed,
    count(*) filter (where status = 'CANCELLED')::bigint as cancelled,
    count(*) filter (where status not in ('COMPLETED', 'FAILED', 'CANCELLED'))::bigint as live,
    coalesce(min(element) filter (where status in ('FAILED', 'CANCELLED')), -1)::int as first
from jobs where fan_out_id = @fan_out_id::uuid;

-- The next elements of a fan-out, until their snapshots have more than so many bytes together. Lengths are read without the
-- snapshots themselves.
-- name: FanOutOutputs :many
select job_id, element, snapshot from (
    select job_id, element, snapshot,
        sum(octet_length(snapshot)) over (order by element rows unbounded preceding) - octet_length(snapshot) as before
    from (
        select job_id, coalesce(element, 0)::int as element, snapshot from jobs
        where fan_out_id = @fan_out_id::uuid and element > @after_element::int
        order by jobs.element
        limit @max_jobs::int
    ) as page
) as measured
where before is null or before <= @max_bytes::bigint
order by element;

-- The jobs of the elements of a batch, by their fan-out and state.
-- name: FanOutCounts :many
select fan_out_id::uuid as fan_out_id, status, count(*) as jobs
from (select jobs.fan_out_id, jobs.status from jobs where jobs.batch_id = @batch_id::uuid offset 0) as batched
where fan_out_id is not null
group by 1, 2;

-- The cancelled fan-outs of which some jobs have not ended, because they were inserted while the cancel was under way. A
-- batch that has expired lets its running jobs end. Each lookup reads one entry of the index.
-- name: FanOutOrphans :many
with recursive live as (
    (
        select fan_out_id from jobs
        where fan_out_id is not null and status not in ('COMPLETED', 'FAILED', 'CANCELLED')
        order by fan_out_id limit 1
    )
    union all
    select (
        select jobs.fan_out_id from jobs
        where jobs.fan_out_id > live.fan_out_id and jobs.status not in ('COMPLETED', 'FAILED', 'CANCELLED')
        order by jobs.fan_out_id limit 1
    )
    from live where live.fan_out_id is not null
)
select jobs.job_id, batches.batch_id, batches.owner_id
from live
join jobs on jobs.job_id = any (array[live.fan_out_id]) and jobs.status = 'CANCELLED'
join batches on batches.batch_id = any (array[jobs.batch_id])
where batches.expired_at is null and not exists (
    select from operations where operations.operation_id = batches.operation_id and operations.finished_at is null
)
limit @max_jobs::int;

-- The jobs of a fan-out that must be cancelled. A job that was retried on its own continues.
-- name: FanOutOrphansOf :many
select job_id from jobs
where fan_out_id = @fan_out_id::uuid and status not in ('COMPLETED', 'FAILED', 'CANCELLED')
    and cancel_requested_at is null and (snapshot is null or snapshot !~ '"from":"(COMPLETED|FAILED|CANCELLED)"')
order by element
limit @max_jobs::int;
