-- Open attempts are few, so the planner would rather look for them in the whole table than go by the
-- keys it is given (measured: 10 ms a batch). What it cannot estimate it takes for half of all: hence the
-- "case when … then true else false end".

-- name: AttemptInsertNew :exec
-- Who inserts the row runs the attempt. This one is for orders that nobody has had, as nearly all are:
-- on conflict and returning cost more than the row (measured). It fails whole when one is there already.
with claim as (
    insert into claims (worker_id, number, job_ids, attempts)
    values (@worker_id::text, @number::bigint, @job_ids::uuid[], @attempts::int[])
)
insert into execution_attempts (job_id, attempt, trace_id, queue, worker_id, timeout_ms)
select
    unnest(@job_ids::uuid[]), unnest(@attempts::int[]), unnest(@trace_ids::uuid[]), unnest(@queues::text[]),
    @worker_id::text, unnest(@timeout_mss::int[]);

-- name: AttemptInsertMany :many
-- The same for any orders. One whose cancel is wanted, or for which it is too late, is born settled, so
-- that it can never start. Number 0 is no claim: all of them are to be cancelled. Where nothing expires
-- the array of instants may be empty.
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
join execution_attempts a using (job_id, attempt);

-- name: AttemptWantCancelMany :exec
-- The worker that holds the attempt reads this at its next beat. Locked in the order of the key, as
-- every batch here, so that two batches do not deadlock.
with open as (
    select a.job_id, a.attempt
    from rows from (unnest(@job_ids::uuid[]), unnest(@attempts::int[])) as input (job_id, attempt)
    join execution_attempts a using (job_id, attempt)
    where case when a.outcome is null and not a.cancel_wanted then true else false end
    order by a.job_id, a.attempt
    for update of a
)
update execution_attempts a set cancel_wanted = true
from open
where a.job_id = open.job_id and a.attempt = open.attempt;

-- name: AttemptCompleteMany :one
-- The lean form of AttemptSettleMany, for the outcome that nearly all have. Beats write the start of
-- what runs long; then the row's is the one that counts, and this leaves the row alone.
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
    where a.job_id = input.job_id and a.attempt = input.attempt
      and case when a.worker_id = @worker_id::text and a.outcome is null and a.started_at is null
          then true else false end
    returning 1
)
select now()::timestamptz as at, count(*)::int as attempts from done;

-- name: AttemptSettleMany :many
-- The guard: only an open attempt, only by the worker that holds it. An outcome that was reached is never overwritten.
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
where a.job_id = input.job_id and a.attempt = input.attempt
  and case when a.worker_id = @worker_id::text and a.outcome is null then true else false end
returning a.job_id, a.attempt, a.started_at, a.finished_at;

-- name: AttemptStartMany :exec
-- A beat writes when each running attempt started: other workers count its timeout from there. Only the worker's own
-- clock knows how long the attempt has run, so a start that is more than a lease off is written again: the database's
-- clock has been stepped. Rows that are being settled at this moment are skipped.
with running as (
    select a.job_id, a.attempt, input.ago
    from rows from (unnest(@job_ids::uuid[]), unnest(@attempts::int[]), unnest(@started_agos::bigint[]))
        as input (job_id, attempt, ago)
    join execution_attempts a using (job_id, attempt)
    where case when a.worker_id = @worker_id::text and a.outcome is null
        and coalesce(now() - interval '1 microsecond' * input.ago - a.started_at
                     not between - @lease::interval and @lease::interval, true) then true else false end
    for update of a skip locked
)
update execution_attempts a set started_at = now() - interval '1 microsecond' * running.ago
from running
where a.job_id = running.job_id and a.attempt = running.attempt;

-- name: AttemptChangedMany :many
-- What others have done to attempts that a worker holds.
select a.*
from rows from (unnest(@job_ids::uuid[]), unnest(@attempts::int[])) as input (job_id, attempt)
join execution_attempts a using (job_id, attempt)
where a.outcome is not null or a.cancel_wanted or a.worker_id <> @worker_id::text;

-- name: AttemptSettleLost :many
-- Locking the silent worker's row is what makes the verdict safe: should that worker wake now, its beat
-- waits for this statement and then reads that its attempts are lost, or it was first and seen_at is new.
-- Claims of which nothing is open any more go with the next pass, or each beat would look at them.
-- An attempt that the last beat listed and that had not started by then is only interrupted: it has lost its worker
-- through no fault of its own. It may have started since, and killed the worker: so every second attempt of a job is lost
-- all the same, or a job that always waits for a slot first could kill workers for ever.
-- The row of the judge itself has to be new by the same clock: when that was stepped between the beat of the judge and
-- this statement, all workers look silent. A row in the future is as silent as an old one: the clock was put back, and
-- the worker has not beaten since.
with silent as (
    select w.worker_id
    from workers w
    where w.seen_at not between now() - @silence::interval and now() + @silence::interval
      and exists (select from claims c where c.worker_id = w.worker_id)
      and exists (select from workers judge
                  where judge.worker_id = @judge_id::text
                    and judge.seen_at between now() - @half_silence::interval and now() + @half_silence::interval)
    order by w.worker_id
    for update of w skip locked
), listed as (
    select c.worker_id, unnest(c.job_ids) as job_id, unnest(c.attempts) as attempt, c.number = 0 as by_beat
    from silent
    join claims c on c.worker_id = silent.worker_id
), open as (
    select a.job_id, a.attempt, listed.by_beat and a.started_at is null and a.attempt % 2 = 1 as waited
    from listed
    join execution_attempts a on a.job_id = listed.job_id and a.attempt = listed.attempt
    where case when a.worker_id = listed.worker_id and a.outcome is null then true else false end
    limit @max_attempts::int
    for update of a skip locked
), dropped as (
    delete from claims c
    using silent
    where c.worker_id = silent.worker_id and not exists (
        select
        from rows from (unnest(c.job_ids), unnest(c.attempts)) as had (job_id, attempt)
        join execution_attempts a using (job_id, attempt)
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
where a.job_id = open.job_id and a.attempt = open.attempt
returning a.*;

-- name: AttemptSettleOverdue :many
-- Its own worker settles an attempt at its timeout; one that is a lease later still open has a worker
-- that beats and does nothing else. A worker that has not beaten lately is left out: it is silent, or the clock has been
-- put forward, which its next beat takes into the starts of its attempts.
with listed as (
    select c.worker_id, unnest(c.job_ids) as job_id, unnest(c.attempts) as attempt
    from workers w
    join claims c on c.worker_id = w.worker_id and c.number = 0
    where w.seen_at > now() - @silence::interval
), overdue as (
    select a.job_id, a.attempt
    from listed
    join execution_attempts a on a.job_id = listed.job_id and a.attempt = listed.attempt
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
where a.job_id = overdue.job_id and a.attempt = overdue.attempt
returning a.*;

-- name: AttemptSettleLeft :many
-- What a worker that leaves still has open, such as a claim whose answer never came.
with listed as (
    select unnest(c.job_ids) as job_id, unnest(c.attempts) as attempt
    from claims c
    where c.worker_id = @worker_id::text
), open as (
    select a.job_id, a.attempt
    from listed
    join execution_attempts a on a.job_id = listed.job_id and a.attempt = listed.attempt
    where case when a.worker_id = @worker_id::text and a.outcome is null then true else false end
    for update of a
)
update execution_attempts a set
    outcome       = 'interrupted',
    finished_at   = now(),
    error_message = 'its worker stopped',
    retryable     = true
from open
where a.job_id = open.job_id and a.attempt = open.attempt
returning a.*;

-- name: AttemptDeleteOld :one
-- A step of a walk along the key, which is in the order of age since job ids are UUIDv7: what was settled
-- long ago goes, an old job's late attempt stays until the next walk. walked is how far it has come; fewer
-- than max_attempts visited: it has come to the end.
with page as (
    select job_id, attempt, finished_at
    from execution_attempts
    where (job_id, attempt) > (@after_id::uuid, @after_attempt::int) and job_id < @before_id::uuid
    order by job_id, attempt
    limit @max_attempts::int
), gone as (
    delete from execution_attempts a using page
    where a.job_id = page.job_id and a.attempt = page.attempt and page.finished_at < now() - @age::interval
    returning 1
)
select
    (select count(*) from page)::int as visited,
    (select count(*) from gone)::int as deleted,
    coalesce(walked.job_id, '00000000-0000-0000-0000-000000000000')::uuid as job_id,
    coalesce(walked.attempt, 0)::int as attempt
from (select 1) as one
left join (select job_id, attempt from page order by job_id desc, attempt desc limit 1) as walked on true;
