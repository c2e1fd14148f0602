-- What ties a job to others: the order of a key, and the jobs that have to end first.

-- One at a time adds to a key's jobs, until its commit, so that numbers rise in the order of commits. The
-- keys come sorted: whoever needs two of them takes them in one order.
-- name: OrdersLock :exec
select pg_advisory_xact_lock(order_lock) from unnest(@order_locks::bigint[]) as order_lock;

-- For each key so many numbers, and the last of its jobs that has not ended.
-- name: OrderPlaces :many
select
    wanted.place::int as place,
    array(select nextval('order_numbers') from generate_series(1, wanted.jobs))::bigint[] as numbers,
    coalesce(tail.job_id, '00000000-0000-0000-0000-000000000000')::uuid as tail
from (
    select
        unnest(@places::int[])         as place,
        unnest(@owner_ids::text[])     as owner_id,
        unnest(@ordering_keys::text[]) as ordering_key,
        unnest(@jobs::int[])           as jobs
) as wanted left join lateral (
    select jobs.job_id from jobs
    where jobs.ordering_key = wanted.ordering_key and jobs.owner_id = wanted.owner_id
        and jobs.status not in ('COMPLETED', 'FAILED', 'CANCELLED')
    order by jobs.order_number desc
    limit 1
) as tail on true;

-- Which of these are no jobs of the owner.
-- name: JobsMissing :many
select after_id::uuid as after_id
from unnest(@after_ids::uuid[]) as after_id
where not exists (select 1 from jobs where jobs.job_id = after_id and jobs.owner_id = @owner_id::text);

-- JobInsertMany for jobs of which some want what few do.
-- name: JobInsertTied :many
with input as (
    select
        unnest(@job_ids::uuid[])                                      as job_id,
        unnest(@trace_ids::uuid[])                                    as trace_id,
        unnest(@owner_ids::text[])                                    as owner_id,
        unnest(@job_types::text[])                                    as job_type,
        unnest(@queues::text[])                                       as queue,
        unnest(@payloads::json[])                                     as payload,
        unnest(@priorities::int[])                                    as priority,
        unnest(@max_retry_counts::int[])                              as max_retry_count,
        unnest(@retry_policies::json[])                               as retry_policy,
        unnest(@timeouts_ms::int[])                                   as timeout_ms,
        nullif(unnest(@run_ats::timestamptz[]), '0001-01-01Z')        as run_at,
        nullif(unnest(@delays_ms::bigint[]), 0)                       as delay_ms,
        unnest(@tags::text[])::text[]                                 as tags,
        nullif(unnest(@idempotency_keys::text[]), '')                 as idempotency_key,
        unnest(@request_hashes::bytea[])                              as request_hash,
        nullif(unnest(@event_sources::text[]), '')                    as event_source,
        nullif(unnest(@event_ids::text[]), '')                        as event_id,
        unnest(@event_owners::text[])                                 as event_owner,
        nullif(unnest(@expires_ats::timestamptz[]), '0001-01-01Z')    as expires_at,
        nullif(unnest(@ordering_keys::text[]), '')                    as ordering_key,
        nullif(unnest(@order_numbers::bigint[]), 0)                   as order_number,
        nullif(unnest(@order_afters::uuid[]), '00000000-0000-0000-0000-000000000000') as order_after,
        nullif(unnest(@afters::text[]), '{}')::uuid[]                 as after_ids,
        nullif(unnest(@runs_anyways::boolean[]), false)               as runs_anyway,
        nullif(unnest(@callback_urls::text[]), '')                    as callback_url,
        nullif(unnest(@run_again_ofs::uuid[]), '00000000-0000-0000-0000-000000000000') as run_again_of
)
insert into jobs (
    job_id, trace_id, owner_id, job_type, queue, payload, priority, max_retry_count, retry_policy,
    timeout_ms, run_at, tags, idempotency_key, request_hash, event_source, event_id, event_owner, status,
    expires_at, ordering_key, order_number, order_after, after_ids, runs_anyway, callback_url, run_again_of
)
select
    job_id, trace_id, owner_id, job_type, queue, payload, priority, max_retry_count, retry_policy,
    timeout_ms, coalesce(run_at, now() + interval '1 ms' * delay_ms), tags, idempotency_key,
    case when idempotency_key is not null then request_hash end,
    event_source, event_id, event_owner,
    case when coalesce(run_at, now() + interval '1 ms' * delay_ms) > now() then 'SCHEDULED' else 'PENDING' end,
    expires_at, ordering_key, order_number, order_after, after_ids, runs_anyway, callback_url, run_again_of
from input
on conflict do nothing
returning job_id, run_at, created_at;

-- What jobs wait for by the API's own view, as the scheduler does not tell it: of those that have to end
-- first, of which so many are looked at, so many that have not, and an order where an earlier job of the key has not ended. One that is gone
-- had ended.
-- name: JobsTied :many
with waiting as (
    select job_id, owner_id, ordering_key, order_number, after_ids, runs_anyway from jobs
    where job_id = any (@job_ids::uuid[])
)
select waiting.job_id, 'dependency'::text as kind, unmet.job_id::text as id
from waiting cross join lateral (
    select jobs.job_id from unnest(waiting.after_ids[:@most_looked_at::int]) as after_id join jobs on jobs.job_id = after_id
    where jobs.owner_id = waiting.owner_id and jobs.status <> 'COMPLETED'
        and (waiting.runs_anyway is null or jobs.status not in ('FAILED', 'CANCELLED'))
    limit @max_dependencies::int
) as unmet
union all
select waiting.job_id, 'order'::text as kind, waiting.ordering_key::text as id
from waiting
where exists (
    select 1 from jobs
    where jobs.ordering_key = waiting.ordering_key and jobs.owner_id = waiting.owner_id
        and jobs.status not in ('COMPLETED', 'FAILED', 'CANCELLED') and jobs.order_number < waiting.order_number
);
