-- Notifies watchers of changed jobs, if the statement that changes them does not.
-- name: ChangesNotify :exec
select pg_notify(coalesce(nullif(current_schema(), 'public'), 'jobweaver') || '_changes', payload) from unnest(@payloads::text[]) as payload;

-- Jobs that may wait for fewer jobs now that others have ended: for each owner, the first later jobs that have such a
-- dependency, the followed jobs, and the next job of each ordering key. As in a list, only a limited number of a job's
-- dependencies is looked at.
-- name: JobsUnblocked :many
with ended as materialized (
    select job_id, owner_id, ordering_key from jobs where job_id = any (@ended_ids::uuid[])
)
select tied.job_id from (
    select owner_id, (array_agg(job_id order by job_id))[1] as first_id, array_agg(job_id) as ids from ended group by owner_id
) as owners cross join lateral (
    select job_id, status, after_ids from jobs
    where jobs.owner_id = owners.owner_id and after_ids is not null and jobs.job_id > owners.first_id
    order by jobs.job_id
    limit @most_seen::int
) as tied
where tied.status in ('SCHEDULED', 'PENDING') and tied.after_ids[:@most_looked_at::int] && owners.ids
union
select job_id from jobs
where job_id = any (@followed_ids::uuid[]) and status in ('SCHEDULED', 'PENDING')
    and after_ids && array(select ended.job_id from ended)
union
select next.job_id from ended cross join lateral (
    select job_id from jobs
    where jobs.ordering_key = ended.ordering_key and jobs.owner_id = ended.owner_id
        and jobs.status not in ('COMPLETED', 'FAILED', 'CANCELLED')
    order by jobs.order_number
    limit 1
) as next;

-- Which jobs name which of the given jobs in their after.
-- name: JobsNaming :many
select job_id, asked.after_id::uuid as after_id
from jobs, unnest(@after_ids::uuid[]) as asked(after_id)
where job_id = any (@job_ids::uuid[]) and jobs.after_ids is not null and asked.after_id = any (jobs.after_ids);

-- Which of these jobs have a value at a path of their payload.
-- name: JobsWithPayload :many
select job_id::uuid from unnest(@job_ids::uuid[]) as job_id where payload_has(job_id, @path::text[], @wanted::text);

-- Announces a watching client to all processes that change jobs.
-- name: WatchersAnnounce :exec
select pg_notify(coalesce(nullif(current_schema(), 'public'), 'jobweaver') || '_watching', '');
