-- The job of an event. Without authentication no event has an owner, whatever its job has.
-- name: JobOfEvent :one
select job_id from jobs
where event_owner = any (@event_owners::text[]) and event_source = @event_source::text and event_id = @event_id::text
    and (sqlc.narg('owner')::text is null or owner_id = sqlc.narg('owner'))
order by job_id desc
limit 1;

-- These jobs, newest first: a job's id orders by age. Snapshots come until they have max_bytes together; of the jobs
-- after that the snapshot is empty. Lengths are read without the snapshots themselves.
-- name: JobsListed :many
select
    job_id, owner_id, job_type, queue, spec, run_at, tags, trace_id, created_at,
    cancel_requested_at, status, version, attempt, retry_count, updated_at, progress,
    expires_at, ordering_key, fairness_key, idempotency_key, (after_ids is not null)::boolean as has_after, batch_id,
    fan_out_id, element,
    coalesce(case when sum(octet_length(snapshot)) over newest - octet_length(snapshot) <= @max_bytes::bigint
        then snapshot end, '')::text as snapshot
from jobs
where job_id = any (@job_ids::uuid[]) and (sqlc.narg('owner')::text is null or owner_id = sqlc.narg('owner'))
window newest as (order by job_id desc rows unbounded preceding)
order by job_id desc;
