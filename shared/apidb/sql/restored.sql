-- What is compared and put right after databases were restored, while no function runs.

-- name: RestoredJobs :many
select job_id, version, status, command_seq, (ordering_key is not null)::boolean as is_ordered from jobs
where job_id > @after_id::uuid
order by job_id
limit @max_jobs::int;

-- The latest instant of which this database knows, by the database's clock only; the epoch: of none. Workers are seen
-- every few seconds.
-- name: RestoredUntil :one
select greatest(
    (select created_at from jobs order by job_id desc limit 1), (select max(seen_at) from workers), 'epoch')::timestamptz as known_until;

-- The scheduler's word on these jobs as it was heard.
-- name: RestoredWords :many
select job_id, snapshot::json as word, coalesce(cancel_requested_at, '0001-01-01Z')::timestamptz as cancel_requested_at
from jobs
where job_id = any (@job_ids::uuid[]) and version > 0;

-- name: RestoredAccepted :many
select
    job_id, owner_id, job_type, queue, payload, priority, max_retry_count, retry_policy, timeout_ms,
    run_at, trace_id, created_at, expires_at, ordering_key, order_number, order_after, after_ids, runs_anyway
from jobs
where job_id = any (@job_ids::uuid[])
order by job_id;

-- Jobs as the scheduler has them, of which nothing was heard yet: reconcile asks.
-- name: RestoredInsert :execrows
insert into jobs (
    job_id, trace_id, owner_id, job_type, queue, payload, priority, max_retry_count, retry_policy, timeout_ms, run_at,
    created_at, expires_at, ordering_key, order_number, command_seq, status
)
select
    job_id, trace_id, owner_id, job_type, queue, payload, priority, max_retry_count, retry_policy, timeout_ms, run_at,
    created_at, expires_at, ordering_key, order_number, command_seq,
    case when run_at > now() then 'SCHEDULED' else 'PENDING' end
from json_to_recordset(@jobs::json) as known (
    job_id uuid, trace_id uuid, owner_id text, job_type text, queue text, payload json, priority int, max_retry_count int,
    retry_policy json, timeout_ms int, run_at timestamptz, created_at timestamptz, expires_at timestamptz,
    ordering_key text, order_number bigint, command_seq int)
on conflict do nothing;

-- As if nothing had been heard of these: reconcile asks.
-- name: RestoredUnhear :execrows
update jobs set
    version = 0, snapshot = null, attempt = 0, retry_count = 0, progress = null, error_code = null,
    status = case when run_at > now() then 'SCHEDULED' else 'PENDING' end
where job_id = any (@job_ids::uuid[]) and status not in ('COMPLETED', 'FAILED', 'CANCELLED');

-- The next command must have a number that the scheduler has not seen.
-- name: RestoredNumbers :execrows
update jobs set command_seq = input.number
from rows from (unnest(@job_ids::uuid[]), unnest(@numbers::int[])) as input (job_id, number)
where jobs.job_id = input.job_id and jobs.command_seq < input.number;

-- The last version that a control was given here; 0: none was.
-- name: RestoredControlVersion :one
select coalesce(pg_sequence_last_value('control_versions'), 0)::bigint as control_version;

-- Numbers that the scheduler has seen are not given again.
-- name: RestoredSequences :exec
select
    setval('control_versions', greatest(pg_sequence_last_value('control_versions'), @control_version::bigint, 1)),
    setval('order_numbers', greatest(pg_sequence_last_value('order_numbers'), @order_number::bigint, 1));

-- By which versions the scheduler goes, of all controls; what it lacks is said again.
-- name: RestoredControlsApplied :execrows
with known as (
    select
        unnest(@kinds::text[])      as kind,
        unnest(@names::text[])      as name,
        unnest(@versions::bigint[]) as version
)
update controls set applied_version = coalesce((
    select known.version from known where known.kind = controls.kind and known.name = controls.name), 0)
where applied_version > coalesce((
    select known.version from known where known.kind = controls.kind and known.name = controls.name), 0);

-- A control that is newer with the scheduler.
-- name: RestoredControlTake :execrows
insert into controls (
    kind, name, version, applied_version, paused, max_running, starts_per_second, updated_by,
    least_paused, most_running, most_starts_per_second
) values (
    @kind, @name, @version, @version, @paused, sqlc.narg('max_running'), sqlc.narg('starts_per_second'), 'after-restore',
    @paused, sqlc.narg('max_running'), sqlc.narg('starts_per_second')
)
on conflict (kind, name) do update set
    version = excluded.version, applied_version = excluded.applied_version, paused = excluded.paused,
    max_running = excluded.max_running, starts_per_second = excluded.starts_per_second, updated_by = excluded.updated_by
where controls.version < excluded.version;

-- A control that was removed, and by which the scheduler goes: that it holds nothing is said again.
-- name: RestoredControlLift :execrows
insert into controls (kind, name, version, paused, updated_by)
values (@kind, @name, nextval('control_versions'), false, 'after-restore')
on conflict do nothing;
