-- name: JobsStarted :many
-- Starts attempts that a heartbeat lists as running. Locked rows are left for the next heartbeat: a heartbeat waits for
-- no lock, so it takes part in no deadlock.
with input as (
    select unnest(@job_ids::uuid[])            as job_id,
           unnest(@attempts::int[])            as attempt,
           unnest(@worker_ids::text[])         as worker_id,
           unnest(@started_ats::timestamptz[]) as started_at,
           unnest(@entries::text[])            as entry        -- the end of a transition, after at and from
), free as (
    select j.job_id, input.worker_id, input.started_at, input.entry, coalesce(j.worker_id, '')::text as was_listed_by
    from input
    join jobs j on j.job_id = any (array[input.job_id]) and j.attempt = input.attempt
    where case when j.status = 'QUEUED' then true else false end
    for update of j skip locked
)
update jobs
set status           = 'RUNNING',
    version          = jobs.version + 1,
    lease_expires_at = now() + @lease::interval,
    asked            = null,
    worker_id        = free.worker_id,
    started_at       = free.started_at,
    updated_at       = now(),
    moves            = least(jobs.moves + 1, 100),
    history          = history_with(jobs.history, jobs.moves,
                           '{"at":' || (select to_json(now())::text) || ',"from":"QUEUED",' || free.entry, 1)
from free
where jobs.job_id = any (array[free.job_id])
  and case when jobs.status = 'QUEUED' then true else false end
returning jobs.job_id, jobs.trace_id, jobs.status, jobs.version, jobs.attempt, jobs.retry_count, jobs.due_at,
    jobs.callback_deadline_at, jobs.cancel_requested_at, jobs.last_command, jobs.history, jobs.output, jobs.error_code,
    jobs.error_message, jobs.started_at, jobs.finished_at, jobs.updated_at, jobs.queue, jobs.rank, jobs.partition, jobs.worker_id,
    free.was_listed_by;

-- name: LeasesRenew :many
-- Renews the leases of attempts that a heartbeat lists. A lease with enough time left is not written, so that only one
-- heartbeat in a few writes the row.
with free as (
    select j.job_id, input.worker_id, coalesce(j.worker_id, '')::text as was_listed_by
    from rows from (unnest(@job_ids::uuid[]), unnest(@attempts::int[]), unnest(@worker_ids::text[])) as input (job_id, attempt, worker_id)
    join jobs j on j.job_id = any (array[input.job_id]) and j.attempt = input.attempt
    where case when j.status in ('QUEUED', 'RUNNING') then true else false end
      and (j.worker_id is distinct from input.worker_id or j.lease_expires_at < now() + @renew_below::interval)
    for update of j skip locked
)
update jobs
set lease_expires_at = now() + @lease::interval,
    asked            = null,
    worker_id        = free.worker_id
from free
where jobs.job_id = any (array[free.job_id])
  and case when jobs.status in ('QUEUED', 'RUNNING') then true else false end
returning jobs.queue, jobs.partition, jobs.worker_id, free.was_listed_by;

-- name: LeasesCut :exec
-- A lease that ends later than any new lease can end was granted before the clock was put back. It begins anew: either
-- a heartbeat that lists the attempt renews it, or the watchdog asks about the attempt when it is over.
with ahead as (
    select job_id from jobs
    where status in ('QUEUED', 'RUNNING')
      and lease_expires_at > now() + 2 * @lease::interval
      and (asked is null or lease_expires_at > now() + 1.3 * greatest(@lease::interval, interval '5 min'))
    limit @max_jobs::int
    for update skip locked
)
update jobs
set lease_expires_at = now() + @lease::interval,
    asked            = null
from ahead
where jobs.job_id = any (array[ahead.job_id])
  and case when jobs.status in ('QUEUED', 'RUNNING') then true else false end;

-- name: JobsAskAgain :many
-- No heartbeat has listed the attempt for a lease. The same run order goes to another partition, and the worker that
-- receives it reports what its database has of the attempt. Each question without an answer doubles the time until the
-- next one, up to 5 min, with a random part. Only queues that a worker has served for a lease are asked about: a new
-- worker finds the earlier orders in its topic, and must not find each of them twice. In a queue without a worker one
-- attempt at a time is asked about, so that the lag can start a worker: hours without workers must not fill the topic.
with served as materialized (
    select distinct named.queue
    from workers w
    cross join json_object_keys(w.partitions) as named (queue)
    where w.seen_at > now() - @silent_after::interval and (w.slots > 0 or w.rooms is not null)
      and w.since not between now() - @lease::interval and now() + @lease::interval -- later: the clock was put back
      and json_array_length(w.partitions -> named.queue) > 0
), waits as materialized (
    select distinct queue from jobs
    where status in ('QUEUED', 'RUNNING') and lease_expires_at >= now() and asked is not null
), first as materialized (
    select distinct on (queue) job_id from jobs
    where status in ('QUEUED', 'RUNNING') and lease_expires_at < now()
      and queue not in (select queue from served) and queue not in (select queue from waits)
    order by queue, asked desc nulls last, lease_expires_at
), overdue as (
    select job_id, partition, coalesce(worker_id, '')::text as worker_id from jobs
    where status in ('QUEUED', 'RUNNING') and lease_expires_at < now()
      and (queue in (select queue from served) or job_id in (select job_id from first))
    order by lease_expires_at
    limit @max_jobs::int
    for update skip locked
)
update jobs
set lease_expires_at = now() + (0.8 + 0.4 * random())
                       * least(sqlc.arg(lease)::interval * power(2, least(coalesce(asked, 0), 10)), greatest(@lease::interval, interval '5 min')),
    asked            = least(coalesce(asked, 0) + 1, 100),
    partition        = (jobs.partition + 1 + floor(random() * 11)::int) % 12,
    worker_id        = null
from overdue
where jobs.job_id = any (array[overdue.job_id])
  and case when jobs.status in ('QUEUED', 'RUNNING') then true else false end
returning jobs.job_id, jobs.trace_id, jobs.queue, jobs.job_type, jobs.attempt, jobs.payload, jobs.spec, jobs.rank,
    jobs.partition, jobs.cancel_requested_at, jobs.expires_at, jobs.started_at, coalesce(jobs.owner_id, '')::text as owner_id,
    jobs.fairness_key,
    (case when jobs.inputs is not null then parents_of(jobs.inputs) end)::json as parents, jobs.event,
    overdue.partition as was_sent_to, overdue.worker_id as was_listed_by;

-- name: JobsCancelUnanswered :many
-- Cancels that have no answer yet. Each is returned once every 15 s.
select job_id, trace_id, attempt
from jobs
where status in ('QUEUED', 'RUNNING')
  and cancel_requested_at is not null
  and floor(extract(epoch from now() - cancel_requested_at) / 15)
      > floor(extract(epoch from now() - cancel_requested_at - @since_last::interval) / 15)
limit @max_jobs::int;

-- name: JobsWithoutWorker :many
-- Locks jobs that have waited in a lane of a queue since before an instant. No job ranks later than it became ready, and
-- one that was blocked became ready when it was last written.
select job_id from jobs
where queue = @queue_name::text and lane collate "C" = @lane::text and status = 'PENDING' and blocked_by is null
  and rank <= @since::timestamptz and updated_at <= @since
order by rank, job_id
limit @max_jobs::int
for update skip locked;
