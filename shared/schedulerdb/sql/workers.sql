-- name: WorkersSeen :exec
insert into workers (worker_id, partitions, slots, rate, seen_at)
select unnest(@worker_ids::text[]),
       unnest(@partitions::json[]),
       unnest(@slots::int[]),
       unnest(@rates::float8[]),
       statement_timestamp()
on conflict (worker_id) do update
set partitions = excluded.partitions, slots = excluded.slots, rate = excluded.rate, seen_at = excluded.seen_at;

-- name: WorkersGone :exec
-- Deletes workers that are stopping, workers that have been silent for an hour, and workers whose last heartbeat lies
-- in the future because the clock was put back. If one of those is live, its next heartbeat inserts it again.
delete from workers
where worker_id = any (@worker_ids::text[])
   or seen_at not between now() - interval '1 hour' and statement_timestamp() + @silent_after::interval;

-- name: WorkersLive :many
select worker_id, partitions, slots, rate
from workers
where seen_at > now() - @silent_after::interval
  and slots > 0
order by worker_id;
