-- Open attempts are few, so with a plain condition the planner scans the table for them instead of using the given keys
-- (measured: 10 ms a batch). It takes a condition that it cannot estimate as true for half of all rows: hence "case
-- when … then true else false end". Why rows are found by "any (array[…])": docs/sql.md, "Joins by key".

-- name: AttemptInsertNew :exec
-- The worker that inserts the row runs the attempt. This statement is for new attempts, as nearly all are: "on
-- conflict" and "returning" cost more than the row itself (measured). It fails as a whole if one attempt has a row
-- already.
with claim as (
    insert into claims (worker_id, number, job_ids, attempts)
    values (@worker_id::text, @number::bigint, @job_ids::uuid[], @attempts::int[])
)
insert into execution_attempts (job_id, attempt, trace_id, queue, worker_id, timeout_ms)
select
    unnest(@job_ids::uuid[]), unnest(@attempts::int[]), unnest(@trace_ids::uuid[]), unnest(@queues::text[]),
    @worker_id::text, unnest(@timeout_mss::int[]);

-- name: AttemptInsertMany :many
-- The same for any orders. The row of a cancelled or expired order is inserted with its outcome, so that the attempt
-- can never start. Number 0 means that all orders are cancels, which is not a claim. If no order expires, the array of
-- instants may be empty.
with claim as (
    insert into claims (worker_id, number, job_ids, attempts)
    select @worker_id::text, @number::bigint, @job_ids::uuid[], @attempts::int[]
    where @number::bigint > 0
), input as (
    select
        unnest(@job_ids::uuid[])     as job_id,
        unnest(@attempts::int[])     as attempt,
        unnest(@trace_ids::uuid[])   as trace_id,
        unnest(@queues::text[])      as queue,
        unnest(@timeout_mss::int[])  as timeout_ms,
        unnest(@cancels::boolean[])  as cancel,
        nullif(unnest(@expires_ats::timestamptz[]), '0001-01-01Z') <= now() as expired
)
insert into execution_attempts
    (job_id, attempt, trace_id, queue, worker_id, timeout_ms, outcome, finished_at, error_code, error_message)
select
    job_id, attempt, trace_id, queue, @worker_id::text, timeout_ms,
    case when cancel or expired then 'cancelled' end,
    case when cancel or expired then now() end,
    case when cancel then 'WORKER.CANCELLED' when expired then 'SCHEDULER.EXPIRED' end,
    case when cancel then 'cancelled before it started' when expired then 'not started before its expiresAt' end
from input
on conflict (job_id, attempt) do nothing
returning job_id, attempt, finished_at, error_code, error_message, now()::timestamptz as at;

-- name: Now :one
select now()::timestamptz as at;

-- name: AttemptGetMany :many
select a.*
from rows from (unnest(@job_ids::uuid[]), unnest(@attempts::int[])) as input (job_id, attempt)
join execution_attempts a on a.job_id = any (array[input.job_id]) and a.attempt = input.attempt;

-- name: AttemptWantCancelMany :exec
-- The worker that holds the attempt reads the mark with its next heartbeat. Rows are locked in the order of their key,
-- as in every batch here, so that two batches do not deadlock.
with open as (
    select a.job_id, a.attempt
    from rows from (unnest(@job_ids::uuid[]), unnest(@attempts::int[])) as input (job_id, attempt)
    join execution_attempts a on a.job_id = any (array[input.job_id]) and a.attempt = input.attempt
    where case when a.outcome is null and not a.cancel_wanted then true else false end
    order by input.job_id, input.attempt
    for update of a
)
update execution_attempts a set cancel_wanted = true
from open
where a.job_id = any (array[open.job_id]) and a.attempt = open.attempt;

-- name: AttemptCompleteMany :one
-- A cheaper form of AttemptSettleMany for the outcome of nearly all attempts. If a heartbeat has written the start of a
-- long attempt, that start counts, and this statement leaves the row as it is.
with input as (
    select
        unnest(@job_ids::uuid[])        as job_id,
        unnest(@attempts::int[])        as attempt,
        unnest(@started_agos::bigint[]) as started_ago,   -- microseconds
        unnest(@finished_agos::bigint[]) as finished_ago,
        unnest(@outputs::json[])        as output
), done as (
    update execution_attempts a set
        outcome     = 'completed',
        started_at  = now() - interval '1 microsecond' * input.started_ago,
        finished_at = now() - interval '1 microsecond' * input.finished_ago,
        output      = input.output
    from input
    where a.job_id = any (array[input.job_id]) and a.attempt = input.attempt
      and case when a.worker_id = @worker_id::text and a.outcome is null and a.started_at is null
          then true else false end
    returning 1
)
select now()::timestamptz as at, count(*)::int as attempts from done;

-- name: AttemptSettleMany :many
-- Only the worker that holds an open attempt can settle it. An outcome is never overwritten.
with input as (
    select
        unnest(@job_ids::uuid[])                  as job_id,
        unnest(@attempts::int[])                  as attempt,
        unnest(@outcomes::text[])                 as outcome,
        nullif(unnest(@started_agos::bigint[]), -1) as started_ago,   -- microseconds; -1: never started
        unnest(@finished_agos::bigint[])          as finished_ago,
        unnest(@outputs::json[])                  as output,
        nullif(unnest(@error_codes::text[]), '')  as error_code,
        nullif(unnest(@messages::text[]), '')     as error_message,
        unnest(@retryables::boolean[])            as retryable,
        unnest(@retry_after_mss::bigint[])        as retry_after_ms,
        nullif(unnest(@callback_timeout_mss::bigint[]), 0) as callback_timeout_ms
)
update execution_attempts a set
    outcome             = input.outcome,
    started_at          = coalesce(a.started_at, now() - interval '1 microsecond' * input.started_ago),
    finished_at         = now() - interval '1 microsecond' * input.finished_ago,
    output              = input.output,
    error_code          = input.error_code,
    error_message       = input.error_message,
    retryable           = input.retryable,
    retry_after_ms      = input.retry_after_ms,
    callback_timeout_ms = input.callback_timeout_ms
from input
where a.job_id = any (array[input.job_id]) and a.attempt = input.attempt
  and case when a.worker_id = @worker_id::text and a.outcome is null then true else false end
returning a.job_id, a.attempt, a.started_at, a.finished_at;

-- name: AttemptStartMany :exec
-- A heartbeat writes when each running attempt started: other workers count its timeout from that instant. Only the
-- worker's own clock measures how long the attempt has run. If the start in the row is more than a lease off, the
-- database's clock has been stepped, and the start is written again. Rows that are being settled at this moment are
-- skipped.
with running as (
    select a.job_id, a.attempt, input.ago
    from rows from (unnest(@job_ids::uuid[]), unnest(@attempts::int[]), unnest(@started_agos::bigint[]))
        as input (job_id, attempt, ago)
    join execution_attempts a on a.job_id = any (array[input.job_id]) and a.attempt = input.attempt
    where case when a.worker_id = @worker_id::text and a.outcome is null
        and coalesce(now() - interval '1 microsecond' * input.ago - a.started_at
                     not between - @lease::interval and @lease::interval, true) then true else false end
    for update of a skip locked
)
update execution_attempts a set started_at = now() - interval '1 microsecond' * running.ago
from running
where a.job_id = any (array[running.job_id]) and a.attempt = running.attempt;

-- name: AttemptChangedMany :many
-- The attempts of a worker that others have settled, marked for a cancel, or claimed.
select a.*
from rows from (unnest(@job_ids::uuid[]), unnest(@attempts::int[])) as input (job_id, attempt)
join execution_attempts a on a.job_id = any (array[input.job_id]) and a.attempt = input.attempt
where a.outcome is not null or a.cancel_wanted or a.worker_id <> @worker_id::text;

-- name: AttemptSettleLost :many
-- Settles the attempts of silent workers. The lock on the silent worker's row makes that safe. If that worker wakes
-- now, there are two interleavings. Its heartbeat may wait for this statement, and then reads that the attempts are
-- lost. Or its heartbeat was first: then seen_at is new, and the worker is not silent. Claims without an open attempt
-- are deleted by the next pass, or every pass would read them.
--
-- An attempt that the last heartbeat listed as not started is only interrupted: it did not kill its worker. But it may
-- have started after that heartbeat and killed the worker. So every second attempt of a job is lost all the same:
-- otherwise a job that always waits for a slot first could kill workers for ever.
--
-- The row of the reaping worker itself must be new by the same clock: if the clock was stepped between that worker's
-- heartbeat and this statement, all workers look silent. A worker whose seen_at lies in the future is silent too: the
-- clock was put back, and the worker has sent no heartbeat since.
with silent as (
    select w.worker_id
    from workers w
    where w.seen_at not between now() - @silence::interval and now() + @silence::interval
      and exists (select from claims c where c.worker_id = w.worker_id)
      and exists (select from workers reaper
                  where reaper.worker_id = @reaper_id::text
                    and reaper.seen_at between now() - @half_silence::interval and now() + @half_silence::interval)
    order by w.worker_id
    for update of w skip locked
), listed as (
    select c.worker_id, unnest(c.job_ids) as job_id, unnest(c.attempts) as attempt, c.number = 0 as by_heartbeat
from silent
    join claims c on c.worker_id = silent.worker_id
), open as (
    select a.job_id, a.attempt, listed.by_heartbeat and a.started_at is null and a.attempt % 2 = 1 as waited
    from listed
    join execution_attempts a on a.job_id = any (array[listed.job_id]) and a.attempt = listed.attempt
    where case when a.worker_id = listed.worker_id and a.outcome is null then true else false end
    limit @max_attempts::int
    for update of a skip locked
), dropped as (
    delete from claims c
    using silent
    where c.worker_id = silent.worker_id and not exists (
        select
        from rows from (unnest(c.job_ids), unnest(c.attempts)) as had (job_id, attempt)
        join execution_attempts a on a.job_id = any (array[had.job_id]) and a.attempt = had.attempt
        where case when a.worker_id = c.worker_id and a.outcome is null then true else false end
    )
)
update execution_attempts a set
    outcome       = case when open.waited then 'interrupted' else 'lost' end,
    finished_at   = now(),
    error_code    = case when not open.waited then 'WORKER.LOST' end,
    error_message = 'its worker ' || a.worker_id || case when open.waited then ' fell silent before it reported a start' else ' fell silent' end,
    retryable     = true
from open
where a.job_id = any (array[open.job_id]) and a.attempt = open.attempt
returning a.*;

-- name: AttemptSettleOverdue :many
-- Settles attempts that are open a lease past their timeout. A worker settles its own attempts at their timeout; a
-- worker that does not is only sending heartbeats. A worker without a recent heartbeat is left out: either it is
-- silent, or the clock was put forward, and its next heartbeat corrects the starts of its attempts.
with listed as (
    select c.worker_id, unnest(c.job_ids) as job_id, unnest(c.attempts) as attempt
    from workers w
    join claims c on c.worker_id = w.worker_id and c.number = 0
    where w.seen_at > now() - @silence::interval
), overdue as (
    select a.job_id, a.attempt
    from listed
    join execution_attempts a on a.job_id = any (array[listed.job_id]) and a.attempt = listed.attempt
    where case when a.worker_id = listed.worker_id and a.outcome is null
        and a.started_at < now() - interval '1 ms' * a.timeout_ms - @lease::interval then true else false end
    limit @max_attempts::int
    for update of a skip locked
)
update execution_attempts a set
    outcome       = 'failed',
    finished_at   = now(),
    error_code    = 'WORKER.TIMEOUT',
    error_message = 'ran longer than ' || a.timeout_ms || ' ms, and its worker did not end it',
    retryable     = true
from overdue
where a.job_id = any (array[overdue.job_id]) and a.attempt = overdue.attempt
returning a.*;

-- name: AttemptSettleLeft :many
-- Settles the attempts that a stopping worker still has open, such as those of a claim whose answer was lost.
with listed as (
    select unnest(c.job_ids) as job_id, unnest(c.attempts) as attempt
    from claims c
    where c.worker_id = @worker_id::text
), open as (
    select a.job_id, a.attempt
    from listed
    join execution_attempts a on a.job_id = any (array[listed.job_id]) and a.attempt = listed.attempt
    where case when a.worker_id = @worker_id::text and a.outcome is null then true else false end
    for update of a
)
update execution_attempts a set
    outcome       = 'interrupted',
    finished_at   = now(),
    error_message = 'its worker stopped',
    retryable     = true
from open
where a.job_id = any (array[open.job_id]) and a.attempt = open.attempt
returning a.*;

-- name: AttemptDeleteOld :one
-- One step of a walk along the key, which is in the order of age because job ids are UUIDv7. It deletes attempts that
-- were settled long ago; a recent attempt of an old job stays until a later walk. walked is the last key of the step.
-- If visited is less than max_attempts, the walk is at its end.
with page as (
    select job_id, attempt, finished_at
    from execution_attempts
    where (job_id, attempt) > (@after_id::uuid, @after_attempt::int) and job_id < @before_id::uuid
    order by job_id, attempt
    limit @max_attempts::int
), gone as (
    delete from execution_attempts a using page
    where a.job_id = any (array[page.job_id]) and a.attempt = page.attempt and page.finished_at < now() - @age::interval
    returning 1
)
select
    (select count(*) from page)::int as visited,
    (select count(*) from gone)::int as deleted,
    coalesce(walked.job_id, '00000000-0000-0000-0000-000000000000')::uuid as job_id,
    coalesce(walked.attempt, 0)::int as attempt
from (select 1) as one
left join (select job_id, attempt from page order by job_id desc, attempt desc limit 1) as walked on true;
