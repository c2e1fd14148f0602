-- Statements that compare and correct databases after a restore, while no function runs.

-- name: RestoredJobs :many
select job_id, version, status, command_seq, (ordering_key is not null)::boolean as is_ordered from jobs
where job_id > @after_id::uuid
order by job_id
limit @max_jobs::int;

-- The latest instant that this database has recorded, by the database's clock only; the epoch: none. A heartbeat of a
-- worker is recorded every few seconds.
-- name: RestoredUntil :one
select greatest(
    (select created_at from jobs order by job_id desc limit 1), (select max(seen_at) from workers), 'epoch')::timestamptz as known_until;

-- The stored statuses of these jobs.
-- name: RestoredStatuses :many
select job_id, snapshot::json as status, coalesce(cancel_requested_at, '0001-01-01Z')::timestamptz as cancel_requested_at
from jobs
where job_id = any (@job_ids::uuid[]) and version > 0;

-- name: RestoredAccepted :many
select
    job_id, owner_id, job_type, case when for_each is null then queue else '-fan-out' end::text as queue,
    payload, spec,
    run_at, trace_id, created_at, expires_at, ordering_key, order_number, order_after, after_ids, runs_anyway, fairness_key,
    after_conditions, inputs, event,
    coalesce((
        select batches.batch_id from batches where batches.batch_id = jobs.batch_id and batches.graph is not null
    ), '00000000-0000-0000-0000-000000000000')::uuid as flow_id
from jobs
where job_id = any (@job_ids::uuid[])
order by job_id;

-- Inserts jobs from the scheduler's rows, without a status: reconcile asks the scheduler for it.
-- name: RestoredInsert :execrows
insert into jobs (
    job_id, trace_id, owner_id, job_type, queue, payload, spec, run_at,
    created_at, expires_at, ordering_key, order_number, command_seq, fairness_key, inputs, event,
    for_each, status
)
select
    job_id, trace_id, owner_id, job_type, queue, payload, spec, run_at,
    created_at, expires_at, ordering_key, order_number, command_seq, nullif(nullif(fairness_key, owner_id), ''),
    inputs, event,
    case when queue = '-fan-out' then '{}'::json end, -- stands for the lost array, so the fan-out fails
    case when run_at > now() then 'SCHEDULED' else 'PENDING' end
from json_to_recordset(@jobs::json) as known (
    job_id uuid, trace_id uuid, owner_id text, job_type text, queue text, payload json, spec json,
    run_at timestamptz, created_at timestamptz, expires_at timestamptz,
    ordering_key text, order_number bigint, command_seq int,
    fairness_key text, inputs json, event json)
on conflict do nothing;

-- Removes the stored statuses of these jobs: reconcile asks the scheduler for them.
-- name: RestoredForgetStatuses :execrows
update jobs set
    version = 0, snapshot = null, attempt = 0, retry_count = 0, progress = null, error_code = null,
    status = case when run_at > now() then 'SCHEDULED' else 'PENDING' end
where job_id = any (@job_ids::uuid[]) and status not in ('COMPLETED', 'FAILED', 'CANCELLED');

-- Raises the number of the next command above all that the scheduler has seen.
-- name: RestoredNumbers :execrows
update jobs set command_seq = input.number
from rows from (unnest(@job_ids::uuid[]), unnest(@numbers::int[])) as input (job_id, number)
where jobs.job_id = any (array[input.job_id]) and jobs.command_seq < input.number;

-- The last version that this database gave to a control; 0: none.
-- name: RestoredControlVersion :one
select coalesce(pg_sequence_last_value('control_versions'), 0)::bigint as control_version;

-- Raises the sequences, so that numbers that the scheduler has seen are not used again.
-- name: RestoredSequences :exec
select
    setval('control_versions', greatest(pg_sequence_last_value('control_versions'), @control_version::bigint, 1)),
    setval('order_numbers', greatest(pg_sequence_last_value('order_numbers'), @order_number::bigint, 1));

-- Stores which version of each control the scheduler applies. Reconcile publishes the versions that the scheduler
-- lacks.
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

-- Stores a control of which the scheduler has the newer version.
-- name: RestoredControlTake :execrows
insert into controls (
    kind, name, version, applied_version, paused, max_running, starts_per_second, weight, workers, updated_by,
    least_paused, most_running, most_starts_per_second
) values (
    @kind, @name, @version, @version, @paused, sqlc.narg('max_running'), sqlc.narg('starts_per_second'),
    sqlc.narg('weight'), sqlc.narg('workers'), 'after-restore',
    @paused, sqlc.narg('max_running'), sqlc.narg('starts_per_second')
)
on conflict (kind, name) do update set
    version = excluded.version, applied_version = excluded.applied_version, paused = excluded.paused,
    max_running = excluded.max_running, starts_per_second = excluded.starts_per_second, weight = excluded.weight,
    workers = excluded.workers,
    updated_by = excluded.updated_by
where controls.version < excluded.version;

-- Restores a removed control that the scheduler still applies, as one that holds nothing, to be published again.
-- name: RestoredControlLift :execrows
insert into controls (kind, name, version, paused, updated_by)
values (@kind, @name, nextval('control_versions'), false, 'after-restore')
on conflict do nothing;

-- Takes the created queues that workers serve and that this database does not know: their jobs may be known.
-- name: RestoredQueues :execrows
insert into queues (name, workers, created_by)
select name, workers, 'after-restore' from controls where kind = 'createdQueue' and workers is not null
on conflict (name) do update set state = 'ACTIVE', removing_at = null, removed_at = null
where queues.state = 'REMOVED';
