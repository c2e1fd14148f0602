-- name: JobsEnds :many
-- How the jobs that others wait for stand. One that is not known yet is not among them.
select job_id, status from jobs where job_id = any (@job_ids::uuid[]);

-- name: DependenciesInsert :execrows
insert into dependencies (after_id, job_id)
select unnest(@after_ids::uuid[]), unnest(@job_ids::uuid[])
on conflict do nothing;

-- name: DependenciesOf :many
-- The jobs that wait for one that has ended. A row that somebody has under his lock is left for later: under the lock
-- of dispatching nobody is waited for, and whoever has it comes here after.
select d.after_id, d.job_id, a.status as ended_as, j.status, j.blocked_by, j.waits_for, j.runs_anyway, j.queue, j.rank,
       j.lane
from dependencies d
join jobs a on a.job_id = d.after_id
join jobs j on j.job_id = d.job_id
where d.after_id = any (@after_ids::uuid[])
  and a.status in ('COMPLETED', 'FAILED', 'CANCELLED')
limit @max_rows::int
for update of j skip locked;

-- name: DependenciesDelete :execrows
delete from dependencies d
using rows from (unnest(@after_ids::uuid[]), unnest(@job_ids::uuid[])) as met (after_id, job_id)
where d.after_id = met.after_id and d.job_id = met.job_id;

-- name: DependenciesLeft :many
-- The jobs that have ended and of which some still wait. Each look is for one row, so that it goes by an index whatever
-- the planner expects.
select distinct d.after_id
from unnest(@after_ids::uuid[]) as given
cross join lateral (
    select a.job_id from jobs a
    where a.job_id = given and a.status in ('COMPLETED', 'FAILED', 'CANCELLED')
    limit 1
) ended
cross join lateral (
    select w.after_id from dependencies w
    where w.after_id = ended.job_id
      and (select true from jobs j where j.job_id = w.job_id)
    limit 1
) d;

-- name: DependenciesDrop :execrows
-- A job that has ended waits for nobody.
delete from dependencies where job_id = any (@job_ids::uuid[]);

-- name: DependenciesOverdue :many
-- Those of jobs that have ended: what was released is not here any more. Walked in the order of the key.
select d.after_id, d.job_id, (a.status is not null and a.status in ('COMPLETED', 'FAILED', 'CANCELLED'))::boolean as ended
from dependencies d
left join jobs a on a.job_id = d.after_id
where (d.after_id, d.job_id) > (@after_id::uuid, @job_id::uuid)
order by d.after_id, d.job_id
limit @max_rows::int;

-- name: JobsWaitLess :exec
-- Some of the jobs that they wait for have ended. Nobody is told, so it is no new version.
with input as (
    select unnest(@job_ids::uuid[]) as job_id, unnest(@ended::int[]) as ended
)
update jobs
set waits_for  = nullif(jobs.waits_for - input.ended, 0),
    blocked_by = case when jobs.waits_for = input.ended and jobs.blocked_by = 'dependency' then null else jobs.blocked_by end
from input
where jobs.job_id = input.job_id;

-- name: OrderTaken :many
-- Of keys: whether some job has its turn, and the number of the first that stands in line; 0: none does.
select k.ordering_key::text as ordering_key, k.owner_id::text as owner_id,
       exists (select 1 from jobs j
               where j.ordering_key = k.ordering_key and coalesce(j.owner_id, '') = k.owner_id
                 and j.ordering_key is not null and j.blocked_by is distinct from 'order'
                 and j.status not in ('COMPLETED', 'FAILED', 'CANCELLED'))::boolean as has_turn,
       coalesce((select j.order_number from jobs j
                 where j.ordering_key = k.ordering_key and coalesce(j.owner_id, '') = k.owner_id and j.blocked_by = 'order'
                 order by j.order_number
                 limit 1), 0)::bigint as first_in_line
from rows from (unnest(@ordering_keys::text[]), unnest(@owner_ids::text[])) as k (ordering_key, owner_id);

-- name: OrderKnown :many
-- Of the jobs that others of their key come after, those that are known with all that were accepted before them. Each is
-- looked up by itself: order_gaps is nearly always empty, so statistics say that it is small, and a join would scan it.
select job_id from jobs
where job_id = any (@job_ids::uuid[])
  and not exists (select 1 from order_gaps g where g.job_id = jobs.job_id offset 0);

-- name: OrderGapsInsert :exec
insert into order_gaps (order_after, job_id, ordering_key, owner_id)
select unnest(@order_afters::uuid[]), unnest(@job_ids::uuid[]), unnest(@ordering_keys::text[]), unnest(@owner_ids::text[]);

-- name: OrderGapsClose :many
-- All that came after these, which are known now with all before them: one gap closed closes the next.
with recursive known as (
    select g.job_id from order_gaps g where g.order_after = any (@job_ids::uuid[])
    union all
    select next.job_id from known, lateral (select g.job_id from order_gaps g where g.order_after = known.job_id offset 0) next
)
delete from order_gaps g
where g.job_id = any (array(select known.job_id from known))
returning g.ordering_key, g.owner_id;

-- name: TurnsTake :many
-- Of each key of which no job has its turn, the first in line has it now, if it is known with all before it. First it is
-- chosen, then it is locked: where somebody has it under his lock, no other goes before it, and he comes here after.
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
                        and j.status not in ('COMPLETED', 'FAILED', 'CANCELLED'))
), free as (
    select j.job_id from first join jobs j on j.job_id = first.job_id
    where j.blocked_by = 'order'
    for update of j skip locked
)
update jobs
set blocked_by = case when jobs.waits_for is not null then 'dependency' end
from free
where jobs.job_id = free.job_id
returning jobs.job_id, jobs.status, jobs.blocked_by, jobs.queue, jobs.rank, jobs.lane;

-- name: TurnsOverdue :many
-- The keys of which a job waits for its turn, one step of the index a key, walked in the order of the key; and whether
-- another has it.
with recursive line as (
    (select j.ordering_key, coalesce(j.owner_id, '') as owner_id from jobs j
     where j.blocked_by = 'order' and (j.ordering_key, coalesce(j.owner_id, '')) > (@ordering_key::text, @owner_id::text)
     order by j.ordering_key, coalesce(j.owner_id, '')
     limit 1)
    union all
    select later.ordering_key, later.owner_id
    from line
    cross join lateral (
        select j.ordering_key, coalesce(j.owner_id, '') as owner_id from jobs j
        where j.blocked_by = 'order' and (j.ordering_key, coalesce(j.owner_id, '')) > (line.ordering_key, line.owner_id)
        order by j.ordering_key, coalesce(j.owner_id, '')
        limit 1
    ) later
)
select line.ordering_key::text as ordering_key, line.owner_id::text as owner_id,
       exists (select 1 from jobs j
               where j.ordering_key = line.ordering_key and coalesce(j.owner_id, '') = line.owner_id
                 and j.ordering_key is not null and j.blocked_by is distinct from 'order'
                 and j.status not in ('COMPLETED', 'FAILED', 'CANCELLED'))::boolean as has_turn
from line
limit @max_keys::int;
