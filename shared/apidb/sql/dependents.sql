-- The dependencies of jobs: the order of an ordering key, and the jobs that must end first.

-- Only one transaction at a time adds jobs to a key, until its commit, so that numbers rise in the order of commits.
-- The keys are sorted, so that all transactions take them in the same order.
-- name: OrdersLock :exec
select pg_advisory_xact_lock(order_lock) from unnest(@order_locks::bigint[]) as order_lock;

-- For each key the next numbers, and the last of its jobs that has not ended.
-- name: OrderPlaces :many
select
    wanted.place::int as place,
    array(select nextval('order_numbers') from generate_series(1, wanted.jobs))::bigint[] as numbers,
    coalesce(tail.job_id, '00000000-0000-0000-0000-000000000000')::uuid as tail,
    coalesce(tail.trace_id, '00000000-0000-0000-0000-000000000000')::uuid as tail_trace_id,
    coalesce(tail.created_at, '0001-01-01Z')::timestamptz as tail_created_at,
    tail.run_at as tail_run_at,
    coalesce(tail.status, '')::text as tail_status
from (
    select
        unnest(@places::int[])         as place,
        unnest(@owner_ids::text[])     as owner_id,
        unnest(@ordering_keys::text[]) as ordering_key,
        unnest(@jobs::int[])           as jobs
) as wanted left join lateral (
    select jobs.job_id, jobs.trace_id, jobs.created_at, jobs.run_at, jobs.status from jobs
    where jobs.ordering_key = wanted.ordering_key and jobs.owner_id = wanted.owner_id
        and jobs.status not in ('COMPLETED', 'FAILED', 'CANCELLED')
    order by jobs.order_number desc
    limit 1
) as tail on true;

-- Which of these ids are not jobs of the owner.
-- name: JobsMissing :many
select after_id::uuid as after_id
from unnest(@after_ids::uuid[]) as after_id
where not exists (select 1 from jobs where jobs.job_id = after_id and jobs.owner_id = @owner_id::text offset 0);

-- The reasons why jobs wait, as the API knows them, since the scheduler does not publish them: the jobs that must end
-- first and have not ended, of which only a limited number is looked at, and the order, if an earlier job of the key
-- has not ended. A deleted job counts as ended.
-- name: JobsBlocks :many
with waiting as (
    select job_id, owner_id, ordering_key, order_number, after_ids,
        runs_anyway is not null or after_conditions is not null as has_conditions
    from jobs
    where job_id = any (@job_ids::uuid[])
)
select waiting.job_id, 'dependency'::text as kind, unmet.job_id::text as id
from waiting cross join lateral (
    select jobs.job_id from unnest(waiting.after_ids[:@most_looked_at::int]) as after_id join jobs on jobs.job_id = any (array[after_id])
    where jobs.owner_id = waiting.owner_id and jobs.status <> 'COMPLETED'
        and (not waiting.has_conditions or jobs.status not in ('FAILED', 'CANCELLED'))
    limit @max_dependencies::int
) as unmet
union all
select waiting.job_id, 'order'::text as kind, waiting.ordering_key::text as id
from waiting
where exists (
    select 1 from jobs
    where jobs.ordering_key = waiting.ordering_key and jobs.owner_id = waiting.owner_id
        and jobs.status not in ('COMPLETED', 'FAILED', 'CANCELLED') and jobs.order_number < waiting.order_number
    offset 0
);
