-- Reads the data that decides on a callback, and locks its job. The lock is a statement of its own, so that the
-- statements after it see the latest commits.
-- name: CallbackLock :one
select status, version, attempt, trace_id, cancel_requested_at, snapshot from jobs where job_id = @job_id for update;

-- The other data that decides, once the job is locked: the time, the unanswered command, and an earlier callback of the
-- attempt.
-- name: CallbackBefore :one
select
    clock_timestamp()::timestamptz as at,
    coalesce((select command from commands where commands.job_id = @job_id), '')::text as pending,
    (select body_hash from callbacks where callbacks.job_id = @job_id and callbacks.attempt = @attempt) as body_hash;

-- name: WebhookSeen :execrows
insert into webhook_ids (message_hash) values (@message_hash) on conflict do nothing;

-- A signature may be dated five minutes ahead, so message ids are kept longer than a signature is valid.
-- name: WebhooksForget :exec
delete from webhook_ids where seen_at < now() - interval '15 min';

-- name: CallbackKeep :one
insert into callbacks (job_id, attempt, outcome, output, error_code, message, retryable, body_hash, received_at)
values (
    @job_id, @attempt, @outcome, sqlc.narg('output')::json, @error_code, @message, @retryable, @body_hash,
    clock_timestamp()
)
returning received_at;

-- name: CallbacksLock :exec
select from jobs where job_id = any (@job_ids::uuid[]) order by job_id for update;

-- Gives up waiting attempts past their deadline that have had no callback. The caller has locked their jobs.
-- name: CallbacksGiveUp :exec
insert into callbacks (job_id, attempt, outcome, error_code, message, retryable, body_hash, received_at)
select input.job_id, input.attempt, 'failed', @error_code::text, @message::text, true, '', clock_timestamp()
from (
    select
        unnest(@job_ids::uuid[])          as job_id,
        unnest(@attempts::int[])          as attempt,
        unnest(@deadlines::timestamptz[]) as deadline
) as input join jobs on jobs.job_id = any (array[input.job_id])
where input.deadline <= clock_timestamp() and jobs.status = 'WAITING' and jobs.attempt = input.attempt
on conflict do nothing;

-- The callbacks of waiting attempts, for republishing.
-- name: CallbacksOf :many
select
    callbacks.job_id, callbacks.attempt, callbacks.outcome, callbacks.output, callbacks.error_code, callbacks.message,
    callbacks.retryable, callbacks.received_at, jobs.trace_id
from callbacks join jobs on jobs.job_id = any (array[callbacks.job_id])
where callbacks.job_id = any (@job_ids::uuid[])
    and (callbacks.job_id, callbacks.attempt) in (select unnest(@job_ids::uuid[]), unnest(@attempts::int[]))
    and callbacks.answered_at is null;

-- The progress of a waiting attempt, which only an outside system reports. If the API has not yet received a status
-- that shows the attempt, the progress is stored all the same, as progress from a heartbeat is.
-- name: CallbackProgress :exec
update jobs set progress = @progress::json where job_id = @job_id;

-- The jobs whose callback blocks a command: it was accepted, and no status shows its effect yet. A callback of an
-- attempt that the API does not know blocks commands only for a while, because it may be a mistake.
-- name: CallbacksInTheWay :many
select distinct callbacks.job_id
from callbacks join jobs on jobs.job_id = any (array[callbacks.job_id])
where callbacks.job_id = any (@job_ids::uuid[]) and callbacks.answered_at is null
    and not attempt_is_over(callbacks.attempt, jobs.status, jobs.version, jobs.attempt)
    and (callbacks.attempt <= jobs.attempt or callbacks.received_at > now() - interval '10 min');

-- Deletes the callbacks whose attempts are over. Callbacks of attempts that cannot exist are dropped, so that they do
-- not count for a later attempt: the scheduler's status is newer and shows an earlier attempt; or the job ended
-- before the attempt, and no retry is pending. The status has the time of another server, whose clock may be ahead by
-- more than the minute, so the callback must also be ten minutes old; by then reconcile has asked for the job's state
-- many times.
-- name: CallbacksAnswer :exec
with dropped as (
    delete from callbacks using jobs
    where callbacks.answered_at is null and jobs.job_id = any (array[callbacks.job_id])
        and jobs.version > 0 and jobs.attempt < callbacks.attempt
        and (jobs.updated_at > callbacks.received_at + interval '1 min' and callbacks.received_at < now() - interval '10 min'
            or jobs.status in ('COMPLETED', 'FAILED', 'CANCELLED')
                and not exists (select from commands where commands.job_id = jobs.job_id and commands.command = 'retry' offset 0))
)
update callbacks set answered_at = now(), output = null
from jobs
where callbacks.answered_at is null and jobs.job_id = any (array[callbacks.job_id])
    and attempt_is_over(callbacks.attempt, jobs.status, jobs.version, jobs.attempt);

-- The callbacks of attempts that are not over: in their first minute in each pass, since a waiting attempt is given
-- up soon after its deadline; then whenever another age of times_due has passed. Bounded in rows and in bytes.
-- name: CallbacksUnconfirmed :many
with pass as (
    select @since::timestamptz as since, @until::timestamptz as until
), unconfirmed as (
    select
        callbacks.job_id, callbacks.attempt, callbacks.outcome, callbacks.output, callbacks.error_code, callbacks.message,
        callbacks.retryable, callbacks.received_at, jobs.trace_id, coalesce(octet_length(callbacks.output::text), 0) as bytes
    from pass cross join callbacks join jobs on jobs.job_id = any (array[callbacks.job_id])
    where callbacks.answered_at is null and callbacks.job_id > @after_id::uuid
        and callbacks.received_at <= pass.until - interval '2 s'
        and (callbacks.received_at > pass.until - interval '60 s'
            or times_due(pass.until - callbacks.received_at) > times_due(pass.since - callbacks.received_at))
        and not attempt_is_over(callbacks.attempt, jobs.status, jobs.version, jobs.attempt)
    order by callbacks.job_id, callbacks.attempt
    limit @max_callbacks::int
), page as (
    select unconfirmed.*, sum(bytes) over (order by job_id, attempt) - bytes as bytes_before from unconfirmed
)
select job_id, attempt, outcome, output, error_code, message, retryable, received_at, trace_id
from page
where bytes_before <= @max_bytes::bigint
order by job_id, attempt;
