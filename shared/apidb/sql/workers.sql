-- name: WorkerSeeMany :exec
insert into workers (worker_id, beat)
select unnest(@worker_ids::text[]), unnest(@beats::json[])
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

-- name: WorkersAll :many
select worker_id, seen_at, (seen_at > now() - interval '10 s')::boolean as live, beat from workers order by worker_id;

-- name: JobsOfOwner :many
select job_id from jobs where job_id = any (@job_ids::uuid[]) and owner_id = @owner_id;
