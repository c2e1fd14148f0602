-- Held jobs: those of debounced requests, until they are released.

-- The held jobs of keys whose locks the caller has. It also locks the rows: a job that is being released or has got a
-- command meanwhile is no longer held.
-- name: HeldJobs :many
select wanted.place::int as place, jobs.job_id, jobs.trace_id, jobs.created_at, jobs.ordering_key
from (
    select unnest(@places::int[]) as place, unnest(@owner_ids::text[]) as owner_id, unnest(@keys::text[]) as key
) as wanted cross join lateral (
    select debounced.job_id from jobs as debounced
    where debounced.owner_id = wanted.owner_id and debounced.policies -> 'debounce' ->> 'key' = wanted.key
        and debounced.held and debounced.version = 0
    offset 0
) as found join jobs on jobs.job_id = any (array[found.job_id])
where case when jobs.held and jobs.version = 0 then true else false end
order by found.job_id
for update of jobs;

-- The requests that have changed a job before.
-- name: MergedFind :many
with wanted as (
    select unnest(@ordinals::int[]) as ordinal, unnest(@owner_ids::text[]) as owner_id, unnest(@identities::bytea[]) as identity
)
select wanted.ordinal::int as ordinal, merged.request_hash, jobs.job_id, jobs.trace_id, jobs.owner_id, jobs.run_at, jobs.created_at
from wanted join merged_submits as merged on merged.owner_id = any (array[wanted.owner_id]) and merged.identity = wanted.identity
join jobs on jobs.job_id = any (array[merged.job_id]);

-- name: MergedKeep :exec
insert into merged_submits (owner_id, identity, request_hash, job_id)
select unnest(@owner_ids::text[]), unnest(@identities::bytea[]), unnest(@request_hashes::bytea[]), unnest(@job_ids::uuid[])
on conflict do nothing;

-- Releases held jobs that are due, or that a command has made ready. Several processes get different jobs. Only the
-- database's clock decides, and only this statement ends the time during which requests change a job. If more are due
-- than it releases, it also releases the last ones: a job that has just become due does not wait for ten thousand of
-- another owner.
-- name: HeldRelease :many
with commanded as (
    select job_id from jobs where not held order by job_id limit @max_jobs::int for update skip locked
), first as (
    select job_id, run_at from jobs where held and run_at <= now() order by run_at limit @max_jobs for update skip locked
), last as (
    select job_id from jobs
    where held and run_at <= now()
        and run_at > (select max(first.run_at) from first having count(*) = @full_page::bigint)
    order by run_at desc
    limit @max_last::int
    for update skip locked
)
update jobs set held = null, released_at = now()
from (
    select job_id from commanded union all select job_id from first union all select job_id from last
) as ready
where jobs.job_id = any (array[ready.job_id])
returning
    jobs.job_id, jobs.owner_id, jobs.job_type, jobs.queue, jobs.payload, jobs.spec,
    jobs.run_at, jobs.trace_id, jobs.created_at, jobs.expires_at, jobs.ordering_key, jobs.order_number,
    jobs.order_after, jobs.after_ids, jobs.runs_anyway, jobs.fairness_key,
    jobs.after_conditions, jobs.inputs, jobs.event, '00000000-0000-0000-0000-000000000000'::uuid as flow_id;

-- In how many seconds the next held job is due; a high number: none is held.
-- name: HeldNext :one
select coalesce(
    (select date_part('epoch', run_at - clock_timestamp()) from jobs where held order by run_at limit 1), 1e6)::float8 as seconds;

-- The commands of released jobs, which the scheduler could not know before.
-- name: HeldCommands :many
select commands.job_id, commands.number, commands.command, commands.by_whom, commands.run_at, jobs.trace_id, jobs.version,
    commands.change
from commands join jobs on jobs.job_id = any (array[commands.job_id])
where commands.job_id = any (@job_ids::uuid[])
order by commands.job_id;
