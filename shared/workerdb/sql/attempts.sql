-- Open attempts are few, so with a plain condition the planner scans the table for them instead of using the given keys
-- (measured: 10 ms a batch). It takes a condition that it cannot estimate as true for half of all rows: hence "case
-- when … then true else false end". Why rows are found by "any (array[…])": docs/sql.md, "Joins by key".

-- name: BlocksClaim :many
-- Claims attempts that no worker has taken: all of a block, or none. It returns the blocks of which this worker got them.
with claim as (
    insert into claims (worker_id, number, job_ids, attempts, trace_ids)
    values (@worker_id::text, @number::bigint, @job_ids::uuid[], @attempts::int[], @trace_ids::uuid[])
)
insert into blocks as b (block_id, attempt, taken, workers, shares)
select unnest(@block_ids::uuid[]), unnest(@block_attempts::int[]), unnest(@wanted::bigint[]), array[@worker_id::text] as workers,
       array[unnest(@wanted::bigint[])] as shares
on conflict (block_id, attempt) do update set
    taken = b.taken | excluded.taken,
    workers[index_of(b.workers, @worker_id::text)] = @worker_id::text,
    shares[index_of(b.workers, @worker_id::text)] = share_of(b.workers, b.shares, @worker_id::text) | excluded.taken
where b.taken & excluded.taken = 0
returning block_id, attempt;

-- name: BlocksEnsure :exec
-- Makes blocks that are missing, and locks all of them, in the order of their key.
insert into blocks as b (block_id, attempt, taken)
select unnest(@block_ids::uuid[]), unnest(@block_attempts::int[]), 0
on conflict (block_id, attempt) do update set taken = b.taken where false;

-- name: BlocksGet :many
select b.*
from rows from (unnest(@block_ids::uuid[]), unnest(@block_attempts::int[])) as input (block_id, attempt)
join blocks b on b.block_id = any (array[input.block_id]) and b.attempt = input.attempt;

-- name: BlocksMove :many
-- Moves attempts to rows of their own: wanted ones that no worker has taken, if takes is true; otherwise open ones of this
-- worker that are chosen or marked for a cancel. It returns those; AttemptInsertMany has to follow.
with found as (
    select b.block_id, b.attempt, b.cancel_wanted, moving.places
    from rows from (unnest(@block_ids::uuid[]), unnest(@block_attempts::int[]), unnest(@wanted::bigint[]), unnest(@chosen::bigint[]))
        as input (block_id, attempt, wanted, chosen)
    join blocks b on b.block_id = any (array[input.block_id]) and b.attempt = input.attempt
    cross join lateral (
        select case when @takes::boolean then input.wanted & ~b.taken
                    else input.wanted & (input.chosen | b.cancel_wanted) & share_of(b.workers, b.shares, @worker_id::text)
                         & ~(b.moved | b.completed) end as places
    ) as moving
    where case when moving.places <> 0 then true else false end
    order by input.block_id, input.attempt
    for update of b
)
update blocks b set taken = b.taken | found.places, moved = b.moved | found.places
from found
where b.block_id = any (array[found.block_id]) and b.attempt = found.attempt
returning b.block_id, b.attempt, found.places::bigint as places, found.cancel_wanted, now()::timestamptz as at;

-- name: AttemptInsertMany :exec
insert into execution_attempts (
    job_id, attempt, trace_id, worker_id, timeout_ms, cancel_wanted, started_at, finished_at, outcome, output, error_code,
    error_message, retryable, retry_after_ms, callback_timeout_ms)
select unnest(@job_ids::uuid[]), unnest(@attempts::int[]), unnest(@trace_ids::uuid[]), @worker_id::text,
       nullif(unnest(@timeout_mss::int[]), 0), unnest(@cancels_wanted::boolean[]),
       nullif(unnest(@started_ats::timestamptz[]), '0001-01-01Z'), nullif(unnest(@finished_ats::timestamptz[]), '0001-01-01Z'),
       nullif(unnest(@outcomes::text[]), ''), unnest(@outputs::json[]), nullif(unnest(@error_codes::text[]), ''),
       nullif(unnest(@messages::text[]), ''), unnest(@retryables::boolean[]), unnest(@retry_after_mss::bigint[]),
       nullif(unnest(@callback_timeout_mss::bigint[]), 0);

-- name: BlocksWantCancel :exec
update blocks b set cancel_wanted = b.cancel_wanted | (input.wanted & b.taken & ~(b.moved | b.completed))
from rows from (unnest(@block_ids::uuid[]), unnest(@block_attempts::int[]), unnest(@wanted::bigint[]))
    as input (block_id, attempt, wanted)
where b.block_id = any (array[input.block_id]) and b.attempt = input.attempt
  and case when input.wanted & b.taken & ~(b.moved | b.completed | b.cancel_wanted) <> 0 then true else false end;

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

-- name: BlocksComplete :many
-- Completes open attempts of this worker that have no row of their own: all wanted ones of a block, or none. It returns
-- the blocks in which it did. The values of a block are the elements before + 1 to until of the arrays, by place.
with input as (
    select unnest(@block_ids::uuid[]) as block_id, unnest(@block_attempts::int[]) as attempt,
           unnest(@wanted::bigint[]) as wanted, unnest(@befores::int[]) as before, unnest(@untils::int[]) as until
)
update blocks b set
    completed   = b.completed | input.wanted,
    places      = b.places || (@places::smallint[])[before + 1 : until],
    started_at  = b.started_at || array(select now() - interval '1 microsecond' * ago
                                        from unnest((@started_agos::bigint[])[before + 1 : until]) as ago),
    finished_at = b.finished_at || array(select now() - interval '1 microsecond' * ago
                                         from unnest((@finished_agos::bigint[])[before + 1 : until]) as ago),
    outputs     = b.outputs || (@outputs::json[])[before + 1 : until]
from input
where b.block_id = any (array[input.block_id]) and b.attempt = input.attempt
  and case when share_of(b.workers, b.shares, @worker_id::text) & ~(b.moved | b.completed) & input.wanted = input.wanted
      then true else false end
returning b.block_id, b.attempt, now()::timestamptz as at;

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
-- skipped. Nor does a row have its timeout if another worker, for which this one was silent, has moved the attempt.
with running as (
    select a.job_id, a.attempt, input.ago, input.timeout_ms
    from rows from (unnest(@job_ids::uuid[]), unnest(@attempts::int[]), unnest(@started_agos::bigint[]), unnest(@timeout_mss::int[]))
        as input (job_id, attempt, ago, timeout_ms)
    join execution_attempts a on a.job_id = any (array[input.job_id]) and a.attempt = input.attempt
    where case when a.worker_id = @worker_id::text and a.outcome is null
        and coalesce(now() - interval '1 microsecond' * input.ago - a.started_at
                     not between - @lease::interval and @lease::interval, true) then true else false end
    for update of a skip locked
)
update execution_attempts a set
    started_at = now() - interval '1 microsecond' * running.ago, timeout_ms = coalesce(a.timeout_ms, nullif(running.timeout_ms, 0))
from running
where a.job_id = any (array[running.job_id]) and a.attempt = running.attempt;

-- name: AttemptChangedMany :many
-- The attempts of a worker that others have settled, marked for a cancel, or claimed.
select a.*
from rows from (unnest(@job_ids::uuid[]), unnest(@attempts::int[])) as input (job_id, attempt)
join execution_attempts a on a.job_id = any (array[input.job_id]) and a.attempt = input.attempt
where a.outcome is not null or a.cancel_wanted or a.worker_id <> @worker_id::text;

-- name: WorkersSilent :many
-- The silent workers that have claims, as AttemptSettleLost finds them.
select w.worker_id
from workers w
where w.seen_at not between now() - @silence::interval and now() + @silence::interval
  and exists (select from claims c where c.worker_id = w.worker_id)
  and exists (select from workers reaper
              where reaper.worker_id = @reaper_id::text
                and reaper.seen_at between now() - @half_silence::interval and now() + @half_silence::interval)
order by w.worker_id;

-- name: AttemptsUnmoved :many
-- Open attempts in the claims of a worker that have no row of their own.
select listed.job_id::uuid as job_id, listed.attempt::int as attempt,
       coalesce(listed.trace_id, '00000000-0000-0000-0000-000000000000')::uuid as trace_id
from claims c
cross join lateral rows from (unnest(c.job_ids), unnest(c.attempts), unnest(c.trace_ids)) as listed (job_id, attempt, trace_id)
join blocks b on b.block_id = any (array[block_of(listed.job_id)]) and b.attempt = listed.attempt
where c.worker_id = @worker_id::text
  and case when share_of(b.workers, b.shares, c.worker_id) & ~(b.moved | b.completed) & (1::bigint << place_of(listed.job_id)) <> 0
      then true else false end
limit @most::int;

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
    ) and not exists (
        select
        from rows from (unnest(c.job_ids), unnest(c.attempts)) as had (job_id, attempt)
        join blocks b on b.block_id = any (array[block_of(had.job_id)]) and b.attempt = had.attempt
        where case when share_of(b.workers, b.shares, c.worker_id) & ~(b.moved | b.completed)
                        & (1::bigint << place_of(had.job_id)) <> 0 then true else false end
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
-- One step of a walk along the key of blocks, which is in the order of age because job ids are UUIDv7. It deletes blocks
-- whose attempts were all settled long ago, and their rows; a block with a recent attempt stays until a later walk.
-- block_id and attempt are the last key of the step. If visited is less than max_blocks, the walk is at its end.
with page as (
    select block_id, attempt, taken
    from blocks
    where (block_id, attempt) > (@after_id::uuid, @after_attempt::int) and block_id < @before_id::uuid
    order by block_id, attempt
    limit @max_blocks::int
), gone as (
    delete from blocks b using page
    where b.block_id = any (array[page.block_id]) and b.attempt = page.attempt and b.taken = page.taken
      and b.taken = b.moved | b.completed and now() - @age::interval > all (b.finished_at)
      and (b.moved = 0 or not exists (
          select from execution_attempts a
          where a.job_id between b.block_id and last_of(b.block_id) and block_of(a.job_id) = b.block_id
            and a.attempt = b.attempt and a.finished_at < now() - @age::interval is not true))
    returning b.block_id, b.attempt, b.moved, b.taken
), rows as (
    delete from execution_attempts a using gone
    where gone.moved <> 0 and a.job_id between gone.block_id and last_of(gone.block_id)
      and block_of(a.job_id) = gone.block_id and a.attempt = gone.attempt
)
select
    (select count(*) from page)::int as visited,
    (select coalesce(sum(bit_count(taken::bit(64))), 0) from gone)::int as deleted,
    coalesce(walked.block_id, '00000000-0000-0000-0000-000000000000')::uuid as block_id,
    coalesce(walked.attempt, 0)::int as attempt
from (select 1) as one
left join (select block_id, attempt from page order by block_id desc, attempt desc limit 1) as walked on true;
