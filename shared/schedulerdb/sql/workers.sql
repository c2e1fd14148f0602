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
-- Those that said they stop, those that have been silent for long, and those that were last heard in the future: the
-- clock was put back. Of these the live ones come again with their next beat.
delete from workers
where worker_id = any (@worker_ids::text[])
   or seen_at not between now() - interval '1 hour' and statement_timestamp() + @silent_after::interval;

-- name: WorkersLive :many
select worker_id, partitions, slots, rate
from workers
where seen_at > now() - @silent_after::interval
  and slots > 0
order by worker_id;
