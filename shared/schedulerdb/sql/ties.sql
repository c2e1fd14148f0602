-- name: JobsEnds :many
-- The states of jobs on which others depend. A job that has not arrived yet is missing.
select given.job_id::uuid as job_id, a.status::text as status
from unnest(@job_ids::uuid[]) as given (job_id)
cross join lateral status_of(given.job_id) as a (status);

-- name: DependenciesInsert :execrows
insert into dependencies (after_id, job_id, condition)
select unnest(@after_ids::uuid[]), unnest(@job_ids::uuid[]), unnest(@conditions::text[])
on conflict do nothing;

-- name: DependenciesOf :many
-- The jobs that wait for one that has ended. Locked rows are left for later: a transaction that holds the lock of the
-- ledger waits for no row. The transaction that has the row locked dispatches afterwards, and releases the job then. Each
-- ended job has an equal part of the rows, so that the dependents of one do not wait for the 50,000 of another.
select d.after_id, d.job_id, a.status::text as ended_as, d.status, d.blocked_by, d.waits_for, d.condition,
       d.queue, d.rank, d.lane, d.fairness_key
from (select distinct unnest(@after_ids::uuid[]) as after_id) ended
cross join lateral status_of(ended.after_id) as a (status)
cross join lateral (
    select w.after_id, w.condition, j.job_id, j.status, j.blocked_by, j.waits_for, j.queue, j.rank, j.lane,
           j.fairness_key
    from dependencies w
    join jobs j on j.job_id = any (array[w.job_id])
    where w.after_id = ended.after_id
    limit @each::int
    for update of j skip locked
) d
where a.status in ('COMPLETED', 'FAILED', 'CANCELLED')
limit @max_rows::int;

-- name: DependenciesDelete :execrows
delete from dependencies d
using rows from (unnest(@after_ids::uuid[]), unnest(@job_ids::uuid[])) as met (after_id, job_id)
where d.after_id = any (array[met.after_id]) and d.job_id = any (array[met.job_id]);

-- name: DependenciesLeft :many
-- The ended jobs for which others still wait. Each lookup stops at one row, so that it uses an index whatever the
-- planner expects.
select distinct d.after_id
from unnest(@after_ids::uuid[]) as given (after_id)
cross join lateral (
    select from status_of(given.after_id) as a (status)
    where a.status in ('COMPLETED', 'FAILED', 'CANCELLED')
    limit 1
) ended
cross join lateral (
    select w.after_id from dependencies w
    where w.after_id = given.after_id
      and (select true from jobs j where j.job_id = w.job_id)
    limit 1
) d;

-- name: DependenciesDrop :execrows
-- Deletes the dependencies of ended jobs, which wait for no other job.
delete from dependencies where job_id = any (@job_ids::uuid[]);

-- name: DependenciesOverdue :many
-- A page of all dependencies in the order of their key, and whether the job to wait for has ended. A release deletes
-- the dependencies on ended jobs, so any that are left are overdue.
select d.after_id, d.job_id, (a.status is not null and a.status in ('COMPLETED', 'FAILED', 'CANCELLED'))::boolean as ended
from dependencies d
left join lateral status_of(d.after_id) as a (status) on true
where (d.after_id, d.job_id) > (@after_id::uuid, @job_id::uuid)
order by d.after_id, d.job_id
limit @max_rows::int;

-- name: JobsWaitLess :exec
-- Notes that some of the jobs that these jobs wait for have ended. No status is published, so the version stays. From
-- updated_at JobsWithoutWorker knows since when a job has been ready.
with input as (
    select unnest(@job_ids::uuid[]) as job_id, unnest(@ended::int[]) as ended
)
update jobs
set waits_for  = nullif(jobs.waits_for - input.ended, 0),
    blocked_by = case when jobs.waits_for = input.ended and jobs.blocked_by = 'dependency' and jobs.status <> 'WAITING'
                      then null else jobs.blocked_by end, -- a fan-out now waits for the jobs of its elements
    updated_at = case when jobs.waits_for = input.ended then now() else jobs.updated_at end
from input
where jobs.job_id = any (array[input.job_id]);

-- name: OrderTaken :many
-- For each ordering key: whether a job has the turn, its number if it waits for other jobs, and the number of the first
-- job that waits for the turn; 0: none.
select k.ordering_key::text as ordering_key, k.owner_id::text as owner_id,
       exists (select 1 from jobs j
               where j.ordering_key = k.ordering_key and coalesce(j.owner_id, '') = k.owner_id
                 and j.ordering_key is not null and j.blocked_by is distinct from 'order'
                 and j.status not in ('COMPLETED', 'FAILED', 'CANCELLED')
               offset 0)::boolean as has_turn,
       coalesce((select j.order_number from jobs j
                 where j.ordering_key = k.ordering_key and coalesce(j.owner_id, '') = k.owner_id
                   and j.ordering_key is not null and j.blocked_by is distinct from 'order'
                   and j.status not in ('COMPLETED', 'FAILED', 'CANCELLED') and j.blocked_by = 'dependency'
                 limit 1), 0)::bigint as yield_at,
       coalesce((select j.order_number from jobs j
                 where j.ordering_key = k.ordering_key and coalesce(j.owner_id, '') = k.owner_id and j.blocked_by = 'order'
                 order by j.order_number
                 limit 1), 0)::bigint as first_in_line
from rows from (unnest(@ordering_keys::text[]), unnest(@owner_ids::text[])) as k (ordering_key, owner_id);

-- name: OrderKnown :many
-- Of the predecessors of new jobs, those that have arrived together with all jobs accepted before them. The gap of each
-- is looked up by itself: order_gaps is nearly always empty, so the statistics show a small table, and a join would
-- scan it.
select job_id from all_jobs
where job_id = any (@job_ids::uuid[])
  and not exists (select 1 from order_gaps g where g.job_id = all_jobs.job_id offset 0);

-- name: OrderGapsInsert :exec
insert into order_gaps (order_after, job_id, ordering_key, owner_id)
select unnest(@order_afters::uuid[]), unnest(@job_ids::uuid[]), unnest(@ordering_keys::text[]), unnest(@owner_ids::text[]);

-- name: OrderGapsClose :many
-- Closes the gaps behind these jobs, which have now arrived together with all jobs before them. One closed gap closes
-- the next.
with recursive known as (
    select g.job_id from order_gaps g where g.order_after = any (@job_ids::uuid[])
    union all
    select next.job_id from known, lateral (select g.job_id from order_gaps g where g.order_after = known.job_id offset 0) next
)
delete from order_gaps g
where g.job_id = any (array(select known.job_id from known))
returning g.ordering_key, g.owner_id;

-- name: TurnsYield :exec
-- A job that has the turn but waits for other jobs yields it to one with a lower number: a job that is retried, or the
-- job of an element. So a job waits for a higher number only while that one waits for no job, and no jobs wait for each
-- other in a circle. If another transaction has the job locked, that transaction has it yield afterwards.
with later as (
    select holder.job_id
    from rows from (unnest(@ordering_keys::text[]), unnest(@owner_ids::text[])) as k (ordering_key, owner_id)
    cross join lateral (
        select j.job_id, j.order_number from jobs j
        where j.ordering_key = k.ordering_key and coalesce(j.owner_id, '') = k.owner_id
          and j.ordering_key is not null and j.blocked_by is distinct from 'order'
          and j.status not in ('COMPLETED', 'FAILED', 'CANCELLED') and j.blocked_by = 'dependency'
        limit 1
    ) holder
    cross join lateral (
        select j.job_id, j.order_number from jobs j
        where j.ordering_key = k.ordering_key and coalesce(j.owner_id, '') = k.owner_id and j.blocked_by = 'order'
        order by j.order_number
        limit 1
    ) h
    where h.order_number < holder.order_number
      and not exists (select 1 from order_gaps g where g.job_id = h.job_id offset 0)
), free as (
    select j.job_id from later join jobs j on j.job_id = any (array[later.job_id])
    where case when j.blocked_by = 'dependency' then true else false end
    for update of j skip locked
)
update jobs set blocked_by = 'order' from free where jobs.job_id = any (array[free.job_id]);

-- name: TurnsTake :many
-- Gives the turn of each free ordering key to the first job in line, if all jobs before it have arrived. The job is
-- chosen before it is locked. If another transaction has it locked, no other job overtakes it, and that transaction
-- gives it the turn afterwards.
with first as (
    select h.job_id
    from rows from (unnest(@ordering_keys::text[]), unnest(@owner_ids::text[])) as k (ordering_key, owner_id)
    cross join lateral (
        select j.job_id from jobs j
        where j.ordering_key = k.ordering_key and coalesce(j.owner_id, '') = k.owner_id and j.blocked_by = 'order'
        order by j.order_number
        limit 1
    ) h
    where not exists (select 1 from order_gaps g where g.job_id = h.job_id offset 0)
      and not exists (select 1 from jobs j
                      where j.ordering_key = k.ordering_key and coalesce(j.owner_id, '') = k.owner_id
                        and j.ordering_key is not null and j.blocked_by is distinct from 'order'
                        and j.status not in ('COMPLETED', 'FAILED', 'CANCELLED')
                      offset 0)
), free as (
    select j.job_id from first join jobs j on j.job_id = any (array[first.job_id])
    where case when j.blocked_by = 'order' then true else false end
    for update of j skip locked
)
update jobs
set blocked_by = case when jobs.waits_for is not null or jobs.status = 'WAITING' then 'dependency' end,
    updated_at = now()
from free
where jobs.job_id = any (array[free.job_id])
returning jobs.job_id, jobs.status, jobs.blocked_by, jobs.queue, jobs.rank, jobs.lane, jobs.fairness_key;

-- name: TurnsOverdue :many
-- The ordering keys for which a job waits, in their order, and whether a job has the turn that does not have to yield it.
-- A loose index scan takes one step for each key, to its first job in line.
with recursive line as (
    (select j.ordering_key, coalesce(j.owner_id, '') as owner_id, j.order_number from jobs j
     where j.blocked_by = 'order' and (j.ordering_key, coalesce(j.owner_id, '')) > (@ordering_key::text, @owner_id::text)
     order by j.ordering_key, coalesce(j.owner_id, ''), j.order_number
     limit 1)
    union all
    select later.ordering_key, later.owner_id, later.order_number
    from line
    cross join lateral (
        select j.ordering_key, coalesce(j.owner_id, '') as owner_id, j.order_number from jobs j
        where j.blocked_by = 'order' and (j.ordering_key, coalesce(j.owner_id, '')) > (line.ordering_key, line.owner_id)
        order by j.ordering_key, coalesce(j.owner_id, ''), j.order_number
        limit 1
    ) later
)
select line.ordering_key::text as ordering_key, line.owner_id::text as owner_id,
       exists (select 1 from jobs j
               where j.ordering_key = line.ordering_key and coalesce(j.owner_id, '') = line.owner_id
                 and j.ordering_key is not null and j.blocked_by is distinct from 'order'
                 and j.status not in ('COMPLETED', 'FAILED', 'CANCELLED')
                 and (j.blocked_by is distinct from 'dependency' or j.order_number < line.order_number)
               offset 0)::boolean as has_turn
from line
limit @max_keys::int;
