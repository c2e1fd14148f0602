-- name: WorkersSeen :one
-- Writes the workers of heartbeats, and reports whether the job types of one have changed. A heartbeat whose first part
-- is missing keeps the types.
with seen as (
    select unnest(@worker_ids::text[])  as worker_id,
           unnest(@partitions::json[])  as partitions,
           unnest(@slots::int[])        as slots,
           unnest(@rates::float8[])     as rate,
           unnest(@job_types::jsonb[])  as job_types,
           unnest(@builds::text[])      as build
), before as (
    select w.worker_id, w.job_types from workers w where w.worker_id = any (@worker_ids::text[])
), written as (
    insert into workers (worker_id, partitions, slots, rate, job_types, build, seen_at)
    select seen.worker_id, seen.partitions, seen.slots, seen.rate, seen.job_types, seen.build, statement_timestamp()
    from seen
    on conflict (worker_id) do update
    set partitions = excluded.partitions, slots = excluded.slots, rate = excluded.rate,
        job_types = coalesce(excluded.job_types, workers.job_types), build = excluded.build, seen_at = excluded.seen_at
)
select exists (
    select from seen
    left join before using (worker_id)
    where seen.job_types is distinct from before.job_types and seen.job_types is not null
)::bool as changed;

-- name: WorkersGone :exec
-- Deletes workers that stopped five minutes ago, workers that have been silent for an hour, and workers whose last
-- heartbeat lies in the future because the clock was put back. If one of those is live, its next heartbeat inserts it
-- again. A stopped worker is kept so long because outcomes that it has published still need its build.
delete from workers
where slots = 0 and seen_at < now() - interval '5 minutes'
   or seen_at not between now() - interval '1 hour' and statement_timestamp() + @silent_after::interval;

-- name: WorkersLive :many
select worker_id, partitions, slots, rate
from workers
where seen_at > now() - @silent_after::interval
  and slots > 0
order by worker_id;

-- name: WorkersBuilds :many
-- The builds of workers, including stopped ones.
select worker_id, build from workers where worker_id = any (@worker_ids::text[]) and build <> '';

-- name: WorkersTypes :many
-- The job types and the builds of the live workers.
select worker_id, job_types, coalesce(build, '')::text as build
from workers
where seen_at > now() - @silent_after::interval
  and slots > 0;
