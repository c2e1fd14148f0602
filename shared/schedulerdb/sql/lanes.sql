-- name: LanesPending :many
-- The lanes in which a job waits, each with its best rank. A loose index scan takes one step for each lane.
with recursive waiting as (
    (select first.queue, first.lane, first.rank from jobs first
     where first.status = 'PENDING' and first.blocked_by is null and first.lane is not null
     order by first.queue, first.lane, first.rank limit 1)
    union all
    select later.queue, later.lane, later.rank
    from waiting
    cross join lateral (
        select j.queue, j.lane, j.rank from jobs j
        where j.status = 'PENDING' and j.blocked_by is null and j.lane is not null
          and (j.queue, j.lane) > (waiting.queue, waiting.lane)
        order by j.queue, j.lane, j.rank
        limit 1
    ) later
)
select queue::text as queue, lane::text as lane, rank::timestamptz as rank from waiting;

-- name: PlainBest :many
-- Locks the best jobs of a queue that are in no lane, after a place in the order of the index.
select job_id, job_type, coalesce(owner_id, '')::text as owner_id, rank, ''::text as lane, fairness_key as key from jobs
where queue = @queue_name::text and status = 'PENDING' and blocked_by is null and lane is null
  and (rank, job_id) > (@after_rank::timestamptz, @after_id::uuid)
order by rank, job_id
limit @most::int
for update skip locked;

-- name: LanesBest :many
-- Does the same for lanes of a queue: the best jobs of each.
select best.job_id, best.job_type, best.owner_id, best.rank, wanted.lane::text as lane, best.fairness_key as key
from rows from (unnest(@lanes::text[]), unnest(@after_ranks::timestamptz[]), unnest(@after_ids::uuid[]), unnest(@mosts::int[]))
    as wanted (lane, after_rank, after_id, most)
cross join lateral (
    select j.job_id, j.job_type, coalesce(j.owner_id, '')::text as owner_id, j.rank, j.fairness_key from jobs j
    where j.queue = @queue_name::text and j.lane = wanted.lane and j.status = 'PENDING' and j.blocked_by is null
      and (j.rank, j.job_id) > (wanted.after_rank, wanted.after_id)
    order by j.rank, j.job_id
    limit wanted.most
    for update skip locked
) best;

-- name: JobsSendOut :many
-- Dispatches the jobs that Go chose, as JobsDispatch does. It skips a job that another transaction has locked.
with input as (
    select unnest(@job_ids::uuid[])        as job_id,
           unnest(@partitions::smallint[]) as partition,
           nullif(unnest(@lanes::text[]), '') as lane
), locked as (
    select j.job_id, input.partition, input.lane
    from input
    join jobs j on j.job_id = any (array[input.job_id])
    where case when j.status = 'PENDING' and j.blocked_by is null then true else false end
    for update of j skip locked
)
update jobs
set status           = 'QUEUED',
    version          = jobs.version + 1,
    attempt          = jobs.attempt + 1,
    lease_expires_at = statement_timestamp() + @lease::interval,
    asked            = null,
    partition        = locked.partition,
    lane             = locked.lane,
    worker_id        = null,
    updated_at       = statement_timestamp(),
    moves            = least(jobs.moves + 1, 100),
    history          = case when jobs.moves < 100 then jobs.history else last_moves(jobs.history, 99) end
                       || ',{"at":' || (select to_json(statement_timestamp())::text) || ',"from":"PENDING","to":"QUEUED","by":"'
                       || @by_function::text || '","attempt":' || jobs.attempt + 1 || '}'
from locked
where jobs.job_id = any (array[locked.job_id])
  and jobs.status = 'PENDING'
returning jobs.job_id, jobs.rank, jobs.partition;

-- name: JobsChangeLane :exec
-- Moves jobs to the lane that fits the controls. No status is published: a lane is not part of a job's state.
with input as (
    select unnest(@job_ids::uuid[])           as job_id,
           nullif(unnest(@lanes::text[]), '') as lane
), locked as (
    select j.job_id, input.lane from input join jobs j on j.job_id = any (array[input.job_id]) for update of j skip locked
)
update jobs
set lane = locked.lane
from locked
where jobs.job_id = any (array[locked.job_id])
  and jobs.status = 'PENDING';
