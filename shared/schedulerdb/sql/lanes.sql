-- name: LanesPending :many
-- The lanes of controls in which a job waits, each with its best rank. A loose index scan takes one step for each lane,
-- and one over all lanes of kinds of a queue, of which there may be any number.
with recursive waiting as (
    (select first.queue, first.lane, first.rank from jobs first
     where first.status = 'PENDING' and first.blocked_by is null and first.lane is not null
     order by first.queue, first.lane collate "C", first.rank limit 1)
    union all
    select later.queue, later.lane, later.rank
    from waiting
    cross join lateral (
        select j.queue, j.lane, j.rank from jobs j
        where j.status = 'PENDING' and j.blocked_by is null and j.lane is not null
          and (j.queue, j.lane collate "C")
              > (waiting.queue, case when starts_with(waiting.lane, 'runs:') then 'runs;' else waiting.lane end)
        order by j.queue, j.lane collate "C", j.rank
        limit 1
    ) later
)
select queue::text as queue, lane::text as lane, rank::timestamptz as rank from waiting
where not starts_with(lane, 'runs:');

-- name: LanesOfKinds :many
-- The first lanes in ranges of the lanes of kinds in which a job waits, at most each of a range, with the best rank and
-- the first and the last fairness key of each. A loose index scan takes one step for each lane.
with recursive wanted as (
    select w.queue, w.from_lane, w.to_lane
    from rows from (unnest(@queues::text[]), unnest(@from_lanes::text[]), unnest(@to_lanes::text[]))
        as w (queue, from_lane, to_lane)
), waiting as (
    select wanted.queue, wanted.to_lane, first.lane, first.rank, 1 as n
    from wanted
    cross join lateral (
        select j.lane, j.rank from jobs j
        where j.queue = wanted.queue and j.status = 'PENDING' and j.blocked_by is null and j.lane is not null
          and j.lane collate "C" >= wanted.from_lane and j.lane collate "C" < wanted.to_lane
        order by j.lane collate "C", j.rank
        limit 1
    ) first
    union all
    select waiting.queue, waiting.to_lane, later.lane, later.rank, waiting.n + 1
    from waiting
    cross join lateral (
        select j.lane, j.rank from jobs j
        where j.queue = waiting.queue and j.status = 'PENDING' and j.blocked_by is null and j.lane is not null
          and j.lane collate "C" > waiting.lane and j.lane collate "C" < waiting.to_lane
        order by j.lane collate "C", j.rank
        limit 1
    ) later
    where waiting.n < @each::int
)
select waiting.queue::text as queue, waiting.lane::text as lane, waiting.rank::timestamptz as rank,
       (select j.fairness_key from jobs j
        where j.queue = waiting.queue and coalesce(j.lane, '') = waiting.lane and j.status = 'PENDING' and j.blocked_by is null
        order by j.fairness_key limit 1)::text as first_key,
       (select j.fairness_key from jobs j
        where j.queue = waiting.queue and coalesce(j.lane, '') = waiting.lane and j.status = 'PENDING' and j.blocked_by is null
        order by j.fairness_key desc limit 1)::text as last_key
from waiting
limit @most::int;

-- name: OutByKind :many
-- The attempts of queues that are out, by what pull workers distinguish.
select queue, job_type, coalesce(owner_id, '')::text as owner_id, count(*)::int as attempts
from attempts_out
where queue = any (@queues::text[])
group by 1, 2, 3;

-- name: UnservedIn :many
-- The noted lanes of ranges.
select u.queue, u.lane
from rows from (unnest(@queues::text[]), unnest(@from_lanes::text[]), unnest(@to_lanes::text[]))
    as w (queue, from_lane, to_lane)
join unserved u on u.queue = w.queue and u.lane >= w.from_lane and u.lane < w.to_lane;

-- name: UnservedNote :exec
-- Notes that no worker runs the jobs of lanes. Those that are noted keep their time.
insert into unserved (queue, lane)
select unnest(@queues::text[]), unnest(@lanes::text[])
on conflict do nothing;

-- name: UnservedForget :exec
delete from unserved
using rows from (unnest(@queues::text[]), unnest(@lanes::text[])) as w (queue, lane)
where unserved.queue = w.queue and unserved.lane = w.lane;

-- name: UnservedForgetIn :exec
-- Forgets the noted lanes of ranges.
delete from unserved
using rows from (unnest(@queues::text[]), unnest(@from_lanes::text[]), unnest(@to_lanes::text[]))
    as w (queue, from_lane, to_lane)
where unserved.queue = w.queue and unserved.lane >= w.from_lane and unserved.lane < w.to_lane;

-- name: UnservedOldest :many
-- The lanes whose jobs have been without a worker for longest, and how many such lanes there are.
select queue, lane, since, (select count(*) from unserved)::int as lanes
from unserved
order by since
limit @most::int;

-- name: JobsSendOut :many
-- Dispatches the jobs that Go chose, as JobsDispatch does. It skips a job that another transaction has locked. A locked
-- row is found again by its ctid, without an index: within one snapshot it does not change.
with input as (
    select unnest(@job_ids::uuid[])        as job_id,
           unnest(@partitions::smallint[]) as partition,
           nullif(unnest(@lanes::text[]), '') as lane
), locked as (
    select j.ctid as seen, input.partition, input.lane
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
    history          = history_with(jobs.history, jobs.moves, '{"at":' || (select to_json(statement_timestamp())::text)
                           || ',"from":"PENDING","to":"QUEUED","by":"' || @by_function::text
                           || '","attempt":' || jobs.attempt + 1 || '}', 1)
from locked
where jobs.ctid = locked.seen
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
