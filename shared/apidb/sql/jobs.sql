-- Accepts jobs that differ only in ids and payload, as most jobs of a batch do, and that cannot conflict with a row:
-- they have no key and no event, and their ids are new. It takes half the time of the statement below.
-- name: JobInsertUniform :one
with inserted as (
    insert into jobs (
        job_id, payload, trace_id, owner_id, job_type, queue, spec, tags, fairness_key, run_at, status
    )
    select
        unnest(@job_ids::uuid[]), unnest(@payloads::json[]), unnest(@trace_ids::uuid[]), @owner_id::text, @job_type::text,
        @queue::text, @spec::json, @tags::text[], sqlc.narg('fairness_key')::text, due.run_at,
        case when due.run_at > now() then 'SCHEDULED' else 'PENDING' end
    from (
        select coalesce(sqlc.narg('run_at')::timestamptz, now() + interval '1 ms' * sqlc.narg('delay_ms')::bigint) as run_at
    ) as due
)
select now()::timestamptz as created_at;

-- Accepts many jobs in one statement. It returns no row for a job whose idempotency key or event is known already,
-- even if only from an earlier job of the same batch. now() is one instant for the whole statement, so a delay counts
-- from created_at. The columns that few jobs have are in one JSON value a job; null: it has none of them.
-- name: JobInsertMany :many
with input as (
    select
        unnest(@job_ids::uuid[])                               as job_id,
        unnest(@trace_ids::uuid[])                             as trace_id,
        unnest(@owner_ids::text[])                             as owner_id,
        unnest(@job_types::text[])                             as job_type,
        unnest(@queues::text[])                                as queue,
        unnest(@payloads::json[])                              as payload,
        unnest(@specs::json[])                                 as spec,
        nullif(unnest(@run_ats::timestamptz[]), '0001-01-01Z') as run_at,
        nullif(unnest(@delays_ms::bigint[]), 0)                as delay_ms,
        unnest(@tags::text[])::text[]                          as tags,
        nullif(unnest(@fairness_keys::text[]), '')             as fairness_key,
        nullif(unnest(@idempotency_keys::text[]), '')          as idempotency_key,
        unnest(@request_hashes::bytea[])                       as request_hash,
        unnest(@events::json[])                                as event,
        unnest(@rests::json[])                                 as rest
)
insert into jobs (
    job_id, trace_id, owner_id, job_type, queue, payload, spec, run_at, status, tags, fairness_key, idempotency_key, request_hash,
    event_source, event_id, event_owner, event, expires_at, ordering_key, order_number, order_after, after_ids, runs_anyway,
    after_conditions, inputs, callback_url, run_again_of, batch_id, policies, held, for_each, fan_out_id, element
)
select
    input.job_id, trace_id, owner_id, job_type, queue, payload, spec, due.run_at,
    case when due.run_at > now() then 'SCHEDULED' else 'PENDING' end, tags, fairness_key, idempotency_key, request_hash,
    event_source, event_id, coalesce(event_owner, ''), event, expires_at, ordering_key, order_number, order_after, after_ids, runs_anyway,
    after_conditions, inputs, callback_url, run_again_of, batch_id, policies, held, for_each, fan_out_id, element
from input
cross join lateral (select coalesce(input.run_at, now() + interval '1 ms' * delay_ms) as run_at) as due
cross join lateral json_to_record(rest) as rest (
    event_source text, event_id text, event_owner text, expires_at timestamptz, ordering_key text, order_number bigint,
    order_after uuid, after_ids uuid[], runs_anyway boolean, after_conditions text[], inputs json, callback_url text, run_again_of uuid,
    batch_id uuid, policies json, held boolean, for_each json, fan_out_id uuid, element int
)
on conflict do nothing
returning job_id, run_at, created_at;

-- Gives held jobs the content of later requests. The numbers of their commands rise, so that a change that was checked
-- against the old content is checked again. The delay of each request counts from its own time and not from that of the
-- transaction, which may have waited for the lock of the key.
-- name: HeldReplace :many
with input as (
    select
        unnest(@job_ids::uuid[])                                   as job_id,
        unnest(@job_types::text[])                                 as job_type,
        unnest(@queues::text[])                                    as queue,
        unnest(@payloads::json[])                                  as payload,
        unnest(@specs::json[])                                     as spec,
        unnest(@delays_ms::bigint[])                               as delay_ms,
        unnest(@max_delays_ms::bigint[])                           as max_delay_ms,
        unnest(@tags::text[])::text[]                              as tags,
        nullif(unnest(@expires_ats::timestamptz[]), '0001-01-01Z') as expires_at,
        nullif(unnest(@fairness_keys::text[]), '')                 as fairness_key,
        nullif(unnest(@callback_urls::text[]), '')                 as callback_url,
        unnest(@policies::json[])                                  as policies,
        unnest(@events::json[])                                    as event
)
update jobs set
    job_type = input.job_type, queue = input.queue, payload = input.payload, spec = input.spec,
    tags = input.tags, expires_at = input.expires_at, fairness_key = input.fairness_key,
    callback_url = input.callback_url, policies = input.policies, event = input.event,
    run_at = least(jobs.created_at + interval '1 ms' * input.max_delay_ms, clock_timestamp() + interval '1 ms' * input.delay_ms),
    status = 'SCHEDULED', updated_at = now(), command_seq = jobs.command_seq + 1
from input
where jobs.job_id = any (array[input.job_id]) and case when jobs.held then true else false end
returning jobs.job_id, jobs.run_at;

-- The jobs that conflict with an insert. An event's own identity counts before its key. An id that a client has
-- chosen can be that of a job with another key or another owner: that is a conflict, too.
-- name: JobsInTheWay :many
with input as (
    select
        unnest(@ordinals::int[])          as ordinal,
        unnest(@given_ids::uuid[])        as given_id,
        unnest(@owner_ids::text[])        as owner_id,
        unnest(@idempotency_keys::text[]) as idempotency_key,
        unnest(@event_sources::text[])    as event_source,
        unnest(@event_ids::text[])        as event_id,
        unnest(@event_owners::text[])     as event_owner
)
select input.ordinal::int as ordinal, true::boolean as by_event,
    jobs.job_id, jobs.trace_id, jobs.owner_id, jobs.run_at, jobs.created_at, jobs.request_hash
from input cross join lateral (
    select job_id, trace_id, jobs.owner_id, run_at, created_at, request_hash from jobs
    where jobs.event_owner = input.event_owner and jobs.event_source = input.event_source and jobs.event_id = input.event_id
    offset 0
) as jobs
where input.event_id <> ''
union all
select input.ordinal::int as ordinal, false::boolean as by_event,
    jobs.job_id, jobs.trace_id, jobs.owner_id, jobs.run_at, jobs.created_at, jobs.request_hash
from input cross join lateral (
    select job_id, trace_id, jobs.owner_id, run_at, created_at, request_hash from jobs
    where jobs.owner_id = input.owner_id and jobs.idempotency_key = input.idempotency_key
    offset 0
) as jobs
where input.idempotency_key <> ''
union all
select input.ordinal::int as ordinal, false::boolean as by_event,
    jobs.job_id, jobs.trace_id, jobs.owner_id, jobs.run_at, jobs.created_at, jobs.request_hash
from input join jobs on jobs.job_id = any (array[input.given_id])
where input.given_id <> '00000000-0000-0000-0000-000000000000'
    and (jobs.owner_id <> input.owner_id or jobs.idempotency_key is distinct from input.idempotency_key);

-- A job, and the newest job that runs it again.
-- name: JobByID :one
select
    sqlc.embed(jobs),
    coalesce((
        select newer.job_id from jobs as newer
        where newer.run_again_of = jobs.job_id and (sqlc.narg('owner')::text is null or newer.owner_id = sqlc.narg('owner'))
        order by newer.job_id desc
        limit 1
    ), '00000000-0000-0000-0000-000000000000')::uuid as run_again_as
from jobs
where jobs.job_id = @job_id and (sqlc.narg('owner')::text is null or jobs.owner_id = sqlc.narg('owner'));

-- Which of these jobs have ended or are deleted.
-- name: JobsEnded :many
select asked.job_id::uuid as job_id from unnest(@job_ids::uuid[]) as asked (job_id)
where coalesce((
    select jobs.status in ('COMPLETED', 'FAILED', 'CANCELLED') from jobs where jobs.job_id = asked.job_id
), true);

-- Resets jobs that the scheduler does not know to what was accepted, unless a status has arrived meanwhile.
-- name: JobsForgetStatuses :execrows
update jobs set
    version = 0, snapshot = null, attempt = 0, retry_count = 0, progress = null, error_code = null,
    status = case when run_at > now() then 'SCHEDULED' else 'PENDING' end
from (select unnest(@job_ids::uuid[]) as job_id, unnest(@versions::bigint[]) as version) as input
where jobs.job_id = any (array[input.job_id]) and jobs.version = input.version
    and jobs.status not in ('COMPLETED', 'FAILED', 'CANCELLED')
    and jobs.created_at > now() - @max_age::interval;

-- Applies published statuses of many jobs. A row's version only rises, so a repeated or late status changes nothing. A
-- cancel request is over when the job has ended. The end of a job is entered for the statistics in its minute, but not in
-- a later one than now, as the scheduler's clock may be ahead; a job that ended, was retried and ended again counts
-- twice. Functions do what few jobs need; cron and the deliverers are woken for it. The same statement notifies the
-- watchers of jobs; payloads is empty while no client watches.
-- Why the rows are found by "any (array[…])": docs/sql.md, "Joins by key".
-- name: JobsApplyStatus :one
with changed as (
    update jobs set
        status = input.status, version = input.version, attempt = input.attempt, retry_count = input.retry_count,
        updated_at = input.updated_at, snapshot = input.snapshot,
        error_code = left(nullif(input.error_code, ''), 255), -- an index entry has no room for more than 2,700 bytes
        progress = case when (jobs.progress ->> 'attempt')::int = input.attempt
                             and input.status in ('QUEUED', 'RUNNING', 'WAITING') then jobs.progress end,
        cancel_requested_at = case when input.status not in ('COMPLETED', 'FAILED', 'CANCELLED') then jobs.cancel_requested_at end,
        ended_as = end_before(jobs.status, jobs.attempt, jobs.error_code, input.status, input.attempt, left(input.error_code, 255))
    from rows from (
        unnest(@job_ids::uuid[]), unnest(@statuses::text[]), unnest(@versions::bigint[]), unnest(@attempts::int[]),
        unnest(@retry_counts::int[]), unnest(@updated_ats::timestamptz[]), unnest(@snapshots::text[]),
        unnest(@error_codes::text[]), unnest(@times::int[])
    ) as input (job_id, status, version, attempt, retry_count, updated_at, snapshot, error_code, times)
    where jobs.job_id = any (array[input.job_id]) and jobs.version < input.version
    returning jobs.job_id, jobs.owner_id, jobs.queue, jobs.job_type, jobs.status, jobs.error_code, jobs.updated_at, jobs.ended_as,
        jobs.status in ('COMPLETED', 'FAILED', 'CANCELLED') and split_part(jobs.ended_as, ' ', 1) is distinct from '' as ended,
        case when jobs.run_at is null then input.times else input.times | 65535 end as times, -- only its run time counts
        jobs.callback_url is not null as has_callback,
        (jobs.waits or starts_with(jobs.event_source, '/jobweaver/child/'))
            and (jobs.status = 'SCHEDULED' or jobs.status in ('COMPLETED', 'FAILED', 'CANCELLED')) as has_waits
), entered as (
    insert into tally_entries (at, owner_id, queue, job_type, what, n, kept, times, error_codes)
    select least(date_trunc('minute', updated_at), now()), owner_id, queue, job_type, status, count(*), count(*), array_agg(times),
        coalesce(array_agg(coalesce(error_code, '')) filter (where status = 'FAILED'), '{}')
    from changed where ended group by owner_id, queue, job_type, status, date_trunc('minute', updated_at)
), followed as (
    select count(*) as changed,
        enter_failures(array_agg(job_id) filter (where status = 'FAILED')) as failures,
        enter_former_ends(array_agg(job_id) filter (where ended_as is not null)) as former_ends,
        enter_deliveries(array_agg(job_id) filter (where ended and has_callback)) as deliveries,
        update_waits(array_agg(job_id) filter (where has_waits)) as waits
    from changed
)
select changed::bigint as changed, (
    select count(pg_notify(coalesce(nullif(current_schema(), 'public'), 'jobweaver') || channel, payload)) from (
        select '_deliveries' as channel, '' as payload where deliveries > 0 union all select '_schedules', '' where waits > 0
        union all select '_changes', unnest(@payloads::text[])
    ) as notices
)::bigint as notified from followed; -- which calls all its functions, also those whose results nothing reads

-- Takes answers to commands, also repeated ones. A cancel request is over when the latest command was refused. The
-- answer to a command of an operation is credited to the operation, which is woken.
-- name: CommandsAnswered :exec
with input as (
    select
        unnest(@job_ids::uuid[])     as job_id,
        unnest(@numbers::int[])      as number,
        unnest(@refuseds::boolean[]) as refused,
        unnest(@reasons::text[])     as reason
), answered as (
    delete from commands using input
    where commands.job_id = any (array[input.job_id]) and commands.number <= input.number
    returning commands.operation_id, commands.job_id
), given_up as (
    update jobs set cancel_requested_at = null
    from input
    where jobs.job_id = any (array[input.job_id]) and input.refused and input.number >= jobs.command_seq
        and jobs.cancel_requested_at is not null
), credited as (
    insert into operation_answers (operation_id, applied, refused_id, reason)
    select answered.operation_id, count(*), null, null from answered join input using (job_id)
    where answered.operation_id is not null and not input.refused
    group by answered.operation_id
    union all
    select answered.operation_id, 0, answered.job_id, input.reason from answered join input using (job_id)
    where answered.operation_id is not null and input.refused
    returning operation_id
)
select pg_notify(coalesce(nullif(current_schema(), 'public'), 'jobweaver') || '_operations', '') from credited limit 1;

-- name: JobsDeleted :many
select job_id from deleted_jobs where job_id = any (@job_ids::uuid[]);

-- Those of the deleted jobs whose last version before the deletion has not arrived. It locks them in the order of ids,
-- as all statements do.
-- name: JobsMissingStatus :many
select jobs.job_id
from rows from (unnest(@job_ids::uuid[]), unnest(@versions::bigint[])) as input (job_id, version)
join jobs on jobs.job_id = any (array[input.job_id])
where jobs.version < input.version - 1
order by input.job_id
for no key update of jobs;

-- Deletes jobs that the scheduler has deleted, and remembers their ids; delete_what_jobs_have deletes what goes with them. A job
-- with a later version is kept: it was accepted anew. Commands of operations are answered: a delete as applied, any other
-- as refused.
-- name: JobsDelete :one
with input as (
    select unnest(@job_ids::uuid[]) as job_id, unnest(@versions::bigint[]) as version
), gone as (
    delete from jobs using input
    where jobs.job_id = any (array[input.job_id]) and jobs.version <= input.version
    returning jobs.job_id
), remembered as (
    insert into deleted_jobs (job_id) select job_id from input on conflict do nothing
), answered as (
    delete from commands where job_id = any (array(select gone.job_id from gone))
    returning commands.operation_id, commands.job_id, commands.command
), credited as (
    insert into operation_answers (operation_id, applied, refused_id, reason)
    select operation_id, count(*), null, null from answered
    where operation_id is not null and command = 'delete'
    group by operation_id
    union all
    select operation_id, 0, job_id, 'the job is deleted' from answered
    where operation_id is not null and command <> 'delete'
    returning operation_id
), woken as (
    select pg_notify(coalesce(nullif(current_schema(), 'public'), 'jobweaver') || '_operations', '') from credited limit 1
)
select (select count(*) from gone)::bigint as deleted, (select count(*) from woken)::bigint as woken;

-- Stores the progress of running attempts. A row that does not change is not written. The first heartbeat that lists an
-- attempt may arrive before the scheduler's status of the attempt; its progress is stored, so that the next heartbeat
-- need not be awaited. While an attempt waits for a callback, the worker repeats its last progress for a while, which
-- must not overwrite the progress that the outside system has reported since.
-- name: JobsProgress :many
with input as (
    select
        unnest(@job_ids::uuid[])    as job_id,
        unnest(@attempts::int[])    as attempt,
        unnest(@progresses::json[]) as progress
)
update jobs set progress = input.progress
from input
where jobs.job_id = any (array[input.job_id])
    and case when jobs.attempt = input.attempt then jobs.status in ('QUEUED', 'RUNNING')
            or jobs.status = 'WAITING' -- the worker's last progress, unless the outside system has reported one since
                and (jobs.progress ->> 'callback' is null or (jobs.progress ->> 'attempt')::int < input.attempt)
        else jobs.attempt < input.attempt and jobs.status not in ('COMPLETED', 'FAILED', 'CANCELLED') end
    and jobs.progress::text is distinct from input.progress::text
returning jobs.job_id;

-- name: Now :one
select now()::timestamptz as at;

-- The three passes of reconcile walk several shelves at once, in the order of ids. Each shelf is read in that order
-- and no further than the limit: the planner does not know the order of a union, and would sort all of it.

-- The jobs without a status of the scheduler, whenever another age of times_due has passed; the previous pass ended
-- at since. Ages below the least do not count. A held job is not published yet, and its age counts from its release. Bounded in rows and in bytes. A job
-- ages up to a fifth more slowly, by a hash of its id, so that jobs accepted in one burst do not return to a slow sink
-- as one burst again and again.
-- name: JobsUnconfirmed :many
with pass as (
    select @since::timestamptz as since, @until::timestamptz as until
), page as (
    select
        unconfirmed.*,
        sum(octet_length(payload::text) + weight) over (order by job_id) - octet_length(payload::text) - weight
            as bytes_before
    from pass cross join generate_series(0, 1) as shelf cross join lateral (
        select jobs.*, 39 * coalesce(cardinality(after_ids), 0) as weight from jobs
        where shelf_of(status, version) = shelf and job_id > @after_id::uuid
            and held is null and coalesce(released_at, created_at) <= pass.until - @least::interval
            and times_due((pass.until - coalesce(released_at, created_at)) * (1 - (uuid_hash(job_id) & 255) / 1275.0))
                > times_due((pass.since - coalesce(released_at, created_at)) * (1 - (uuid_hash(job_id) & 255) / 1275.0))
        order by job_id
        limit @max_jobs::int
    ) as unconfirmed
    order by job_id
    limit @max_jobs
)
select
    job_id, owner_id, job_type, case when for_each is null then queue else '-fan-out' end::text as queue,
    payload, spec,
    run_at, trace_id, created_at, expires_at, ordering_key, order_number, order_after, after_ids, runs_anyway, fairness_key,
    after_conditions, inputs, event,
    coalesce((
        select batches.batch_id from batches where batches.batch_id = page.batch_id and batches.graph is not null
    ), '00000000-0000-0000-0000-000000000000')::uuid as flow_id
from page
where bytes_before <= @max_bytes::bigint
order by job_id;

-- Jobs in flight: when their last status is as old as @least, and whenever another minute has passed since.
-- name: JobsInFlight :many
with pass as (
    select @since::timestamptz as since, @until::timestamptz as until
)
select in_flight.job_id, in_flight.version
from pass cross join generate_series(5, 7) as shelf cross join lateral (
    select job_id, version from jobs
    where shelf_of(status, version) = shelf and job_id > @after_id::uuid
        and updated_at <= pass.until - @least::interval
        and floor(date_part('epoch', pass.until - updated_at - @least) / 60)
            > greatest(floor(date_part('epoch', pass.since - updated_at - @least) / 60), -1)
    order by job_id
    limit @max_jobs::int
) as in_flight
order by in_flight.job_id
limit @max_jobs;

-- All other jobs that have not ended, walked by job_id.
-- name: JobsWaiting :many
select waiting.job_id, waiting.version
from generate_series(2, 4) as shelf cross join lateral (
    select job_id, version from jobs
    where shelf_of(status, version) = shelf and job_id > @after_id::uuid
    order by job_id
    limit @max_jobs::int
) as waiting
order by waiting.job_id
limit @max_jobs;

-- The numbers of waiting and of failed jobs, each counted no further than max_jobs.
-- name: JobFigures :one
select
    (select count(*) from (
        select 1 from jobs where shelf_of(status, version) between 0 and 1 limit @max_jobs::int
    ) as unconfirmed)::bigint as unconfirmed,
    (select count(*) from (
        select 1 from jobs where shelf_of(status, version) between 2 and 4 limit @max_jobs
    ) as waiting)::bigint as waiting,
    (select count(*) from (
        select 1 from jobs where shelf_of(status, version) = 8 limit @max_jobs
    ) as dead)::bigint as dead;

-- name: TagsOf :many
select job_id, tags from jobs where job_id = any (@ids::uuid[]) and cardinality(tags) > 0;
