-- name: ControlsList :many
select kind, name, version, paused, max_running, starts_per_second, coalesce(weight, 0)::int as weight,
    coalesce(workers, '')::text as workers
from controls;

-- name: ControlsSave :exec
insert into controls (kind, name, version, paused, max_running, starts_per_second, weight, workers)
select unnest(@kinds::text[]),
       unnest(@names::text[]),
       unnest(@versions::bigint[]),
       unnest(@pauses::boolean[]),
       nullif(unnest(@max_running::int[]), -1),
       nullif(unnest(@starts_per_second::float8[]), 0),
       nullif(unnest(@weights::smallint[]), 0),
       nullif(unnest(@workers::text[]), '')
on conflict (kind, name) do update
set version           = excluded.version,
    paused            = excluded.paused,
    max_running       = excluded.max_running,
    starts_per_second = excluded.starts_per_second,
    weight            = excluded.weight,
    workers           = excluded.workers
where controls.version < excluded.version;

-- name: DrainsForget :exec
-- A worker's id is new at each start, so the drains of workers that are gone would pile up.
delete from controls
where kind = 'worker' and not exists (select from workers w where w.worker_id = controls.name);

-- name: RunningByJob :many
-- The attempts that are out, by job type, owner and fairness key.
select job_type, coalesce(owner_id, '')::text as owner_id, fairness_key, count(*)::int as attempts
from attempts_out
group by 1, 2, 3;
