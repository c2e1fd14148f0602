-- Held jobs: those of debounced requests, until they are released.

-- The held jobs of keys whose locks the caller has. It also locks the rows: a job that is being released or has got a
-- command meanwhile is no longer held.
-- name: HeldJobs :many
select wanted.place::int as place, jobs.job_id, jobs.trace_id, jobs.created_at, jobs.ordering_key
from (
    select unnest(@places::int[]) as place, unnest(@owner_ids::text[]) as owner_id, unnest(@keys::text[]) as key
) as wanted join jobs on jobs.owner_id = wanted.owner_id and jobs.policies -> 'debounce' ->> 'key' = wanted.key
where jobs.held and jobs.version = 0
order by jobs.job_id
for update of jobs;

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
        unnest(@priorities::int[])                                 as priority,
        unnest(@max_retry_counts::int[])                           as max_retry_count,
        unnest(@retry_policies::json[])                            as retry_policy,
        unnest(@timeouts_ms::int[])                                as timeout_ms,
        unnest(@delays_ms::bigint[])                               as delay_ms,
        unnest(@max_delays_ms::bigint[])                           as max_delay_ms,
        unnest(@tags::text[])::text[]                              as tags,
        nullif(unnest(@expires_ats::timestamptz[]), '0001-01-01Z') as expires_at,
        nullif(unnest(@fairness_keys::text[]), '')                 as fairness_key,
        nullif(unnest(@callback_urls::text[]), '')                 as callback_url,
        unnest(@policies::json[])                                  as policies,
        nullif(unnest(@keep_builds::boolean[]), false)             as keep_build
)
update jobs set
    job_type = input.job_type, queue = input.queue, payload = input.payload, priority = input.priority,
    max_retry_count = input.max_retry_count, retry_policy = input.retry_policy, timeout_ms = input.timeout_ms,
    tags = input.tags, expires_at = input.expires_at, fairness_key = input.fairness_key,
    callback_url = input.callback_url, policies = input.policies, keep_build = input.keep_build,
    run_at = least(jobs.created_at + interval '1 ms' * input.max_delay_ms, clock_timestamp() + interval '1 ms' * input.delay_ms),
    status = 'SCHEDULED', updated_at = now(), command_seq = jobs.command_seq + 1
from input
where jobs.job_id = input.job_id and jobs.held
returning jobs.job_id, jobs.run_at;

-- The requests that have changed a job before.
-- name: MergedFind :many
with wanted as (
    select unnest(@ordinals::int[]) as ordinal, unnest(@owner_ids::text[]) as owner_id, unnest(@identities::bytea[]) as identity
)
select wanted.ordinal::int as ordinal, merged.request_hash, jobs.job_id, jobs.trace_id, jobs.owner_id, jobs.run_at, jobs.created_at
from wanted join merged_submits as merged on merged.owner_id = wanted.owner_id and merged.identity = wanted.identity
join jobs on jobs.job_id = merged.job_id;

-- name: MergedKeep :exec
insert into merged_submits (owner_id, identity, request_hash, job_id)
select unnest(@owner_ids::text[]), unnest(@identities::bytea[]), unnest(@request_hashes::bytea[]), unnest(@job_ids::uuid[])
on conflict do nothing;

-- Releases held jobs that are due, or that a command has made ready. Several processes get different jobs. Only the
-- database's clock decides, and only this statement ends the time during which requests change a job.
-- name: HeldRelease :many
with commanded as (
    select job_id from jobs where not held order by job_id limit @max_jobs::int for update skip locked
), due as (
    select job_id from jobs where held and run_at <= now() order by run_at limit @max_jobs for update skip locked
)
update jobs set held = null, released_at = now()
from (select job_id from commanded union all select job_id from due) as ready
where jobs.job_id = ready.job_id
returning
    jobs.job_id, jobs.owner_id, jobs.job_type, jobs.queue, jobs.payload, jobs.priority, jobs.max_retry_count, jobs.retry_policy,
    jobs.timeout_ms, jobs.run_at, jobs.trace_id, jobs.created_at, jobs.expires_at, jobs.ordering_key, jobs.order_number,
    jobs.order_after, jobs.after_ids, jobs.runs_anyway, jobs.fairness_key, jobs.keep_build,
    jobs.after_conditions, jobs.inputs;

-- In how many seconds the next held job is due; a high number: none is held.
-- name: HeldNext :one
select coalesce(
    (select date_part('epoch', run_at - clock_timestamp()) from jobs where held order by run_at limit 1), 1e6)::float8 as seconds;

-- The commands of released jobs, which the scheduler could not know before.
-- name: HeldCommands :many
select commands.job_id, commands.number, commands.command, commands.by_whom, commands.run_at, jobs.trace_id, jobs.version,
    commands.change
from commands join jobs using (job_id)
where commands.job_id = any (@job_ids::uuid[])
order by commands.job_id;
