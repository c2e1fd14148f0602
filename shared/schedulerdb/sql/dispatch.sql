-- name: DispatchLock :one
-- Whoever decides what goes out does so alone, so that what is in flight is counted exactly. No row of jobs is
-- waited for under it, and rows of workers are written only under it.
select now()::timestamptz as at, pg_advisory_xact_lock(7305804402557)::text as locked;

-- name: QueuesPending :many
-- The queues in which a job waits: a loose scan, one step of the index a queue.
with recursive waiting as (
    (select first.queue as name from jobs first where first.status = 'PENDING' order by first.queue limit 1)
    union all
    select (select later.queue from jobs later where later.status = 'PENDING' and later.queue > waiting.name order by later.queue limit 1)
    from waiting
    where waiting.name is not null
)
select waiting.name::text as queue from waiting where waiting.name is not null;

-- name: InFlight :many
-- What is out, by the worker that has said it holds it, else by the partition it was sent to.
select queue, partition::smallint as partition, coalesce(worker_id, '')::text as worker_id, count(*)::int as attempts
from jobs
where status in ('QUEUED', 'RUNNING')
group by 1, 2, 3;

-- name: JobsDispatch :many
-- The best of a queue, in the order of the index, each to the partition that Go chose for its place. The time is the
-- statement's: a job may have come after the transaction began, while it waited for the lock.
with best as (
    select j.job_id, j.rank from jobs j
    where j.queue = @queue_name::text and j.status = 'PENDING'
    order by j.rank, j.job_id
    limit cardinality(@partitions::smallint[])
    for update skip locked
), placed as (
    select best.job_id, row_number() over (order by best.rank, best.job_id) as place from best
)
update jobs
set status           = 'QUEUED',
    version          = jobs.version + 1,
    attempt          = jobs.attempt + 1,
    lease_expires_at = statement_timestamp() + @lease::interval,
    partition        = (@partitions::smallint[])[placed.place],
    worker_id        = null,
    updated_at       = statement_timestamp(),
    history          = case when jsonb_array_length(jobs.history) < 100 then jobs.history else jobs.history - 0 end
                       || jsonb_build_object('at', statement_timestamp(), 'from', 'PENDING', 'to', 'QUEUED',
                                             'attempt', jobs.attempt + 1, 'by', @by_function::text)
from placed
where jobs.job_id = placed.job_id
  and jobs.status = 'PENDING'
returning jobs.job_id, jobs.trace_id, jobs.queue, jobs.job_type, jobs.attempt, jobs.payload, jobs.timeout_ms, jobs.rank,
    jobs.partition, jobs.cancel_requested_at;

-- name: JobsDue :many
-- SCHEDULED and RETRYING jobs whose time has come, among the first of all that is due.
with due as (
    select job_id, due_at from jobs
    where due_at <= now()
    order by due_at
    limit @max_jobs::int
    for update skip locked
)
update jobs
set status     = 'PENDING',
    version    = jobs.version + 1,
    rank       = due.due_at - jobs.priority * interval '10 s',
    due_at     = null,
    updated_at = now(),
    history    = case when jsonb_array_length(jobs.history) < 100 then jobs.history else jobs.history - 0 end
                 || jsonb_build_object('at', now(), 'from', jobs.status, 'to', 'PENDING', 'attempt', jobs.attempt,
                                       'by', 'dispatch', 'reason', 'due')
from due
where jobs.job_id = due.job_id
  and jobs.status in ('SCHEDULED', 'RETRYING')
returning jobs.job_id;

-- name: JobsRunOrders :many
-- The orders of the attempts that are out, to be said again.
select job_id, trace_id, queue, job_type, attempt, payload, timeout_ms, rank, partition, cancel_requested_at
from jobs
where job_id = any (@job_ids::uuid[])
  and status = 'QUEUED';
