-- name: WorkersSeen :exec
INSERT INTO workers (worker_id, partitions, slots, rate, seen_at)
SELECT unnest(@worker_ids::text[]),
       unnest(@partitions::json[]),
       unnest(@slots::int[]),
       unnest(@rates::float8[]),
       now()
ON CONFLICT (worker_id) DO UPDATE
SET partitions = excluded.partitions, slots = excluded.slots, rate = excluded.rate, seen_at = excluded.seen_at;

-- name: WorkersGone :exec
-- Those that said they stop, and those that have been silent for long.
DELETE FROM workers
WHERE worker_id = ANY (@worker_ids::text[])
   OR seen_at < now() - interval '1 hour';

-- name: WorkersLive :many
SELECT worker_id, partitions, slots, rate
FROM workers
WHERE seen_at > now() - @silent_after::interval
  AND slots > 0
ORDER BY worker_id;
