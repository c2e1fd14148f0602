-- name: DispatchLock :one
-- Every transaction that dispatches holds this row's lock until it commits, so that only one dispatches at a time.
-- Under the lock it waits for no row of jobs, and it writes rows of workers only under the lock. The index has the
-- newest version of the row first. A transaction that had to wait for the lock reads the version that was committed
-- meanwhile. It reads the clock after the wait: what it does then comes after what the others have done.
select n, in_flight, floors, due_floor, more, clock_timestamp()::timestamptz as at
from (select * from dispatch_state order by dispatch_state.n desc limit 1 for update) as locked;

-- name: DispatchSave :exec
update dispatch_state
set n         = n + 1,
    in_flight = @in_flight,
    floors    = @floors,
    due_floor = sqlc.narg('due_floor')::timestamptz,
    more      = @more
where n = @n;

-- name: DispatchState :one
select n, in_flight, floors, due_floor, more, now()::timestamptz as at
from dispatch_state
order by n desc
limit 1;

-- name: QueuesPending :many
-- The queues in which a job waits, each with its best rank. A loose index scan takes one step for each queue.
with recursive waiting as (
    (select first.queue, first.rank from jobs first
     where first.status = 'PENDING' and first.blocked_by is null and first.lane is null
     order by first.queue, first.rank limit 1)
    union all
    select later.queue, later.rank
    from waiting
    cross join lateral (
        select j.queue, j.rank from jobs j
        where j.status = 'PENDING' and j.blocked_by is null and j.lane is null and j.queue > waiting.queue
        order by j.queue, j.rank
        limit 1
    ) later
), together as (
    (select c.queue, c.rank, c.fairness_key from cohorts c where c.waiting <> 0 order by c.queue, c.rank limit 1)
    union all
    select later.queue, later.rank, later.fairness_key
    from together
    cross join lateral (
        select c.queue, c.rank, c.fairness_key from cohorts c
        where c.waiting <> 0 and c.queue > together.queue
        order by c.queue, c.rank
        limit 1
    ) later
)
select queue::text as queue, rank::timestamptz as rank, null::text as fairness_key from waiting
union all
select queue, rank, fairness_key from together;

-- name: InFlight :many
-- The attempts that are out, by the worker whose heartbeat lists them, and by the partition to which they were sent.
select queue, coalesce(partition, 0)::smallint as partition, coalesce(worker_id, '')::text as worker_id,
       count(*)::int as attempts, min(lease_expires_at)::timestamptz as lease_expires_at,
       max(lease_expires_at)::timestamptz as last_lease_expires_at, count(cancel_requested_at)::int as cancels
from attempts_out
group by 1, 2, 3;

-- name: JobsDispatch :many
-- Dispatches the best jobs of a queue, in the order of the index, each to the partition that Go chose for its place.
-- The scan begins at the queue's floor: below it the index has only dead entries of dispatched jobs. The time is that
-- of the statement: a job may have arrived while the transaction waited for the lock.
with alone as (
    select j.job_id, j.rank from jobs j
    where j.queue = @queue_name::text and j.status = 'PENDING' and j.blocked_by is null and j.lane is null
      and j.rank >= @floor::timestamptz
    order by j.rank, j.job_id
    limit cardinality(@partitions::smallint[])
    for update skip locked
), best as (
    select *, (@partitions::smallint[])[row_number() over (order by rank, job_id)] as partition
    from (
        select m.job_id, m.rank, m.first_id, m.mask, m.place
        from members m
        where m.first_id = any (array(select best_cohorts(@queue_name, @floor, cardinality(@partitions))))
          and m.status = 'PENDING'
        union all
        select alone.job_id, alone.rank, null, null, null from alone
    ) all_best
    order by rank, job_id
    limit cardinality(@partitions)
), cohort as (
    select first_id, bit_or(mask) as masks, array_agg(partition order by place) as partitions
    from best where first_id is not null group by first_id
), taken as (
    update cohorts set waiting = cohorts.waiting & ~cohort.masks, out = cohorts.out | cohort.masks
    from cohort where cohorts.first_id = any (array[cohort.first_id])
), together as (
    insert into dispatched (first_id, places, out, partitions, by_function, dispatched_at, lease_expires_at)
    select first_id, masks, masks, partitions, @by_function::text, statement_timestamp(), statement_timestamp() + @lease::interval
    from cohort
), sent as (
    update jobs
    set status           = 'QUEUED',
        version          = jobs.version + 1,
        attempt          = jobs.attempt + 1,
        lease_expires_at = statement_timestamp() + @lease::interval,
        asked            = null,
        partition        = best.partition,
        worker_id        = null,
        updated_at       = statement_timestamp(),
        moves            = least(jobs.moves + 1, 100),
        history          = history_with(jobs.history, jobs.moves, '{"at":' || (select to_json(statement_timestamp())::text)
                               || ',"from":"PENDING","to":"QUEUED","by":"' || @by_function
                               || '","attempt":' || jobs.attempt + 1 || '}', 1)
    from best
    where jobs.job_id = any (array[best.job_id]) and jobs.status = 'PENDING' and best.first_id is null
    returning jobs.job_id, jobs.rank, jobs.partition
)
select job_id, rank, partition, false as together from sent
union all
select job_id, rank, partition, true from best where first_id is not null;

-- name: JobsDue :many
-- Makes those SCHEDULED and RETRYING jobs ready that are among the first due rows. If more are due than one pass takes,
-- it also takes the last ones: otherwise a job that has just become due would wait for a million that another owner
-- wanted a moment before. Suspects for which there is no place are put off by a few seconds. Two passes of the clock at
-- the same instant may dispatch one suspect too many: that costs a suspect one further loss, and it fails only after
-- several.
with first as (
    select job_id, due_at, queue, lost_count from jobs
    where due_at >= (select due_floor from dispatch_state order by n desc limit 1)
      and due_at <= now()
    order by due_at
    limit @max_jobs::int
    for update skip locked
), last as (
    select job_id, due_at, queue, lost_count from jobs
    where due_at > (select max(first.due_at) from first having count(*) = @full_page::bigint)
      and due_at <= now()
    order by due_at desc
    limit @max_last::int
    for update skip locked
), due as (
    select * from first union all select * from last
), too_many as (
    select suspects_without_place(array_agg(job_id order by due_at), array_agg(queue order by due_at), @silent_after::interval)::uuid
        as job_id
    from due where lost_count >= 2
), put_off as (
    update jobs set due_at = now() + (2 + 3 * random()) * interval '1 s'
    from too_many where jobs.job_id = any (array[too_many.job_id])
)
update jobs set
    status     = 'PENDING',
    version    = jobs.version + 1,
    rank       = case when due.lost_count >= 2 then jobs.rank -- the job keeps its rank
                      else due.due_at - (jobs.spec ->> 'priority')::int * interval '10 s' end,
    due_at     = null,
    updated_at = now(),
    moves      = least(jobs.moves + 1, 100),
    history    = history_with(jobs.history, jobs.moves, '{"at":' || (select to_json(now())::text) || ',"from":"'
                     || jobs.status || '","to":"PENDING","by":"dispatch","reason":"due","attempt":' || jobs.attempt || '}', 1)
from due
where jobs.job_id = any (array[due.job_id])
  and jobs.status in ('SCHEDULED', 'RETRYING')
  and not exists (select from too_many where too_many.job_id = due.job_id)
returning jobs.job_id, jobs.queue, jobs.rank, jobs.blocked_by, jobs.ordering_key, jobs.owner_id, jobs.lane,
    jobs.fairness_key, jobs.expires_at, jobs.started_at;

-- name: JobsRunOrders :many
-- The run orders of dispatched attempts, the best rank first. If the status were a plain condition, a planner without
-- fresh statistics would walk the index of all attempts that are out.
select job_id, trace_id, queue, job_type, attempt, payload, spec, rank, partition, cancel_requested_at,
       expires_at, started_at, coalesce(owner_id, '')::text as owner_id, fairness_key,
       (case when inputs is not null then parents_of(inputs) end)::json as parents, event, true as prompt
from jobs
where job_id = any (@job_ids::uuid[])
  and case when status = 'QUEUED' then true else false end
union all
select m.job_id, m.trace_id, m.queue, m.job_type, m.attempt, m.payload, m.spec, m.rank, m.partition, null,
       null, null, coalesce(m.owner_id, ''), m.fairness_key, null, null, true
from rows from (unnest(@from_ids::uuid[]), unnest(@to_ids::uuid[]), unnest(@wanted::bigint[])) as block (from_id, to_id, wanted)
cross join lateral (
    select * from members
    where members.first_id between block.from_id and block.to_id and members.status = 'QUEUED'
    offset 0
) m
where block.wanted & (1::bigint << m.in_block) <> 0
order by rank, job_id;
