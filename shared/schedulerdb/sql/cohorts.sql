-- name: CohortsInsert :exec
insert into cohorts (first_id, rank, waiting, queue, job_type, spec, owner_id, fairness_key, created_at, history, job_ids,
                     trace_ids, payloads)
values (@first_id, @rank, @waiting, @queue, @job_type, @spec::json, nullif(@owner_id::text, ''), @fairness_key, @created_at,
        @history, @job_ids::uuid[], @trace_ids::uuid[], @payloads::json[]);

-- name: CohortsNear :one
-- Whether any cohort has members with ids of these blocks. It is much cheaper than the search for the members.
select exists (
    select from rows from (unnest(@from_ids::uuid[]), unnest(@to_ids::uuid[])) as block (from_id, to_id)
    join lateral (select from cohorts where cohorts.first_id between block.from_id and block.to_id limit 1) c on true
);

-- name: MembersNamed :many
-- Those of some jobs that wait in cohorts. The cohorts are found by the blocks of the ids.
select m.job_id::uuid as job_id, m.trace_id::uuid as trace_id, m.queue, m.rank, m.fairness_key, m.history, m.updated_at
from rows from (unnest(@from_ids::uuid[]), unnest(@to_ids::uuid[])) as block (from_id, to_id)
cross join lateral (select * from members where members.first_id between block.from_id and block.to_id offset 0) m
where m.job_id = any (@job_ids::uuid[]);

-- name: MembersBest :many
-- The best jobs of the cohorts of a queue.
select job_id::uuid from members
where first_id = any (array(select best_cohorts(@queue_name::text, '-infinity', @most::int)));

-- name: CohortBest :many
select rank, fairness_key from cohorts where queue = $1 order by rank, first_id limit 1;

-- name: MembersSome :many
-- The jobs of some cohorts.
select job_id::uuid from members
where first_id = any (array(select cohorts.first_id from cohorts order by cohorts.first_id limit @most::int));

-- name: MembersLeave :exec
-- Gives members of cohorts rows of jobs, in which they wait as before.
with leaving as (
    select m.*
    from rows from (unnest(@from_ids::uuid[]), unnest(@to_ids::uuid[])) as block (from_id, to_id)
    cross join lateral (select * from members where members.first_id between block.from_id and block.to_id offset 0) m
    where m.job_id = any (@job_ids::uuid[])
), taken as (
    select first_id, waiting, bit_or(mask) as masks from leaving group by first_id, waiting
), emptied as (
    delete from cohorts using taken where cohorts.first_id = any (array[taken.first_id]) and taken.waiting = taken.masks
), kept as (
    update cohorts set waiting = taken.waiting & ~taken.masks
    from taken
    where cohorts.first_id = any (array[taken.first_id]) and taken.waiting <> taken.masks
)
insert into jobs (job_id, trace_id, job_type, queue, payload, spec, status, rank, history, created_at, updated_at, owner_id,
                  fairness_key)
select job_id, trace_id, job_type, queue, payload, spec, 'PENDING', rank, history, created_at, updated_at, owner_id,
       fairness_key
from leaving;
