-- A transaction that changes a control takes this lock before its next version, so that versions rise in the order of
-- commits.
-- name: ControlLock :exec
select pg_advisory_xact_lock(hashtextextended(@kind::text || ':' || @name::text, 0));

-- name: ControlByName :one
select * from controls where kind = @kind and name = @name;

-- name: ControlsCount :one
select count(*) from (select from controls limit @most::int) as counted;

-- name: ControlPut :one
insert into controls (
    kind, name, version, paused, max_running, starts_per_second, weight, workers, updated_by,
    least_paused, most_running, most_starts_per_second
) values (
    @kind, @name, nextval('control_versions'), @paused, sqlc.narg('max_running'), sqlc.narg('starts_per_second'),
    sqlc.narg('weight'), sqlc.narg('workers'), @updated_by,
    @least_paused, sqlc.narg('most_running'), sqlc.narg('most_starts_per_second')
)
on conflict (kind, name) do update set
    version                = excluded.version,
    paused                 = excluded.paused,
    max_running            = excluded.max_running,
    starts_per_second      = excluded.starts_per_second,
    weight                 = excluded.weight,
    workers                = excluded.workers,
    updated_at             = now(),
    updated_by             = excluded.updated_by,
    least_paused           = excluded.least_paused,
    most_running           = excluded.most_running,
    most_starts_per_second = excluded.most_starts_per_second
returning *;

-- name: ControlsAll :many
select * from controls order by kind, name;

-- Stores the versions that the scheduler applies. A control that no longer holds anything is deleted once it is
-- applied.
-- name: ControlsApplied :exec
with input as (
    select
        unnest(@kinds::text[])      as kind,
        unnest(@names::text[])      as name,
        unnest(@versions::bigint[]) as version
), gone as (
    delete from controls using input
    where controls.kind = input.kind and controls.name = input.name and controls.version <= input.version
        and not paused and max_running is null and starts_per_second is null and weight is null and workers is null
)
update controls set applied_version = input.version
from input
where controls.kind = input.kind and controls.name = input.name and controls.applied_version < input.version
    and not (controls.version <= input.version
        and not paused and max_running is null and starts_per_second is null and weight is null and workers is null);

-- The controls that the scheduler has not applied, whenever another age of times_due has passed.
-- name: ControlsUnconfirmed :many
with pass as (
    select @since::timestamptz as since, @until::timestamptz as until
)
select controls.*
from pass cross join controls
where applied_version < version
    and updated_at <= pass.until - interval '10 s'
    and times_due(pass.until - updated_at) > times_due(pass.since - updated_at)
order by kind, name;
