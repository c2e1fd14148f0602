-- name: WorkersSeen :many
-- Writes the workers of heartbeats. It returns those that may run other jobs than before, and what they ran before:
-- workers whose types, demands or partitions have changed, and those that were silent or had no slots. A heartbeat
-- whose first part is missing keeps the types and the demands.
with seen as (
    select unnest(@worker_ids::text[])  as worker_id,
           unnest(@partitions::json[])  as partitions,
           unnest(@slots::int[])        as slots,
           unnest(@rates::float8[])     as rate,
           unnest(@job_types::jsonb[])  as job_types,
           unnest(@demands::jsonb[])    as demands,
           unnest(@rooms::json[])       as rooms,
           unnest(@builds::text[])      as build
), before as (
    select w.worker_id, w.job_types, w.demands, w.partitions, w.seen_at,
           (w.slots > 0 or w.rooms is not null) as has_slots
    from workers w where w.worker_id = any (@worker_ids::text[])
), written as (
    insert into workers (worker_id, partitions, slots, rate, job_types, demands, rooms, build, seen_at)
    select seen.worker_id, seen.partitions, seen.slots, seen.rate, seen.job_types, seen.demands, seen.rooms, seen.build,
           statement_timestamp()
    from seen
    on conflict (worker_id) do update
    set partitions = excluded.partitions, slots = excluded.slots, rate = excluded.rate,
        job_types = coalesce(excluded.job_types, workers.job_types),
        demands = case when excluded.job_types is null then workers.demands else excluded.demands end,
        rooms = case when excluded.job_types is null then workers.rooms else excluded.rooms end,
        build = excluded.build, seen_at = excluded.seen_at
)
select seen.worker_id::text as worker_id, before.job_types, before.demands,
       coalesce(before.partitions, '{}')::json as partitions,
       coalesce(before.has_slots and before.seen_at > now() - @silent_after::interval, false)::bool as was_live
from seen
left join before using (worker_id)
where seen.job_types is not null
      and (seen.job_types is distinct from before.job_types or seen.demands is distinct from before.demands)
   or seen.partitions::text is distinct from before.partitions::text
   or (seen.slots > 0 or seen.rooms is not null) is distinct from before.has_slots
   or before.seen_at is null or before.seen_at <= now() - @silent_after::interval;

-- name: WorkersGone :exec
-- Deletes workers that stopped five minutes ago, workers that have been silent for an hour, and workers whose last
-- heartbeat lies in the future because the clock was put back. If one of those is live, its next heartbeat inserts it
-- again. A stopped worker is kept so long because outcomes that it has published still need its build.
delete from workers
where slots = 0 and rooms is null and seen_at < now() - interval '5 minutes'
   or seen_at not between now() - interval '1 hour' and statement_timestamp() + @silent_after::interval;

-- name: WorkersLive :many
select worker_id, partitions, slots, rate
from workers
where seen_at > now() - @silent_after::interval
  and (slots > 0 or rooms is not null)
order by worker_id;

-- name: WorkersBuilds :many
-- The builds of workers, including stopped ones.
select worker_id, build from workers where worker_id = any (@worker_ids::text[]) and build <> '';

-- name: WorkersTypes :many
-- What the live workers run, and their builds.
select worker_id, job_types, demands, rooms, coalesce(build, '')::text as build
from workers
where seen_at > now() - @silent_after::interval
  and (slots > 0 or rooms is not null);
