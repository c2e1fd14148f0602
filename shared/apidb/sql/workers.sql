-- name: WorkerSeeMany :exec
insert into workers (worker_id, beat)
select unnest(@worker_ids::text[]), unnest(@heartbeats::json[])
on conflict (worker_id) do update set seen_at = now(), beat = excluded.beat;

-- name: WorkerRemoveMany :exec
delete from workers where worker_id = any (@worker_ids::text[]);

-- A worker has a new id at each start, so the rows of dead workers would pile up.
-- name: WorkersForget :exec
delete from workers where seen_at < now() - interval '1 hour';

-- name: WorkerFigures :one
select
    coalesce(sum((beat ->> 'slots')::int), 0)::bigint as slots,
    coalesce(sum((beat ->> 'slots')::int - (beat ->> 'free')::int), 0)::bigint as busy
from workers
where seen_at > now() - interval '10 s' and not coalesce((beat ->> 'stopping')::boolean, false);

-- name: DrainsForget :exec
-- A drain is deleted with its worker.
delete from controls
where kind = 'worker' and updated_at < now() - interval '1 minute'
  and not exists (select from workers w where w.worker_id = controls.name);

-- name: WorkerIsKnown :one
select exists (select from workers where worker_id = @worker_id)::boolean;

-- A heartbeat that is about an earlier drain does not answer the order.
-- name: WorkersAll :many
select w.worker_id, w.seen_at, (w.seen_at > now() - interval '10 s')::boolean as live, w.beat,
    coalesce(c.paused, false)::boolean as draining,
    coalesce(c.paused and (w.beat ->> 'drainVersion')::bigint >= c.version, false)::boolean as answered
from workers w
left join controls c on c.kind = 'worker' and c.name = w.worker_id
order by w.worker_id;

-- name: JobsHeld :many
select job_id, owner_id, job_type, tags from jobs
where job_id = any (@job_ids::uuid[]) and (@everyone::bool or owner_id = @owner_id::text);
