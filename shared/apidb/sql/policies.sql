-- The data by which submit policies decide. The caller holds the locks of the keys.

-- For each request the newest job because of which it is not unique. A job that must be ACTIVE or WAITING is only
-- looked for among the jobs that have not ended, because a key may have many ended ones.
-- name: UniqueHolders :many
with wanted as (
    select
        unnest(@ordinals::int[])   as ordinal,
        unnest(@owner_ids::text[]) as owner_id,
        unnest(@keys::text[])      as key,
        unnest(@fors_ms::bigint[]) as for_ms,
        unnest(@whiles::text[])    as while
)
select wanted.ordinal::int as ordinal, holder.job_id, holder.trace_id, holder.run_at, holder.created_at, holder.status
from wanted cross join lateral (
    select jobs.job_id, jobs.trace_id, jobs.run_at, jobs.created_at, jobs.status from jobs
    where jobs.owner_id = wanted.owner_id and jobs.policies -> 'unique' ->> 'key' = wanted.key
        and jobs.policies -> 'unique' is not null and jobs.status not in ('COMPLETED', 'FAILED', 'CANCELLED')
        and (wanted.while = 'ACTIVE' or jobs.status in ('SCHEDULED', 'PENDING') and jobs.attempt = 0)
        and (wanted.for_ms = 0 or jobs.created_at > now() - interval '1 ms' * wanted.for_ms)
    order by jobs.created_at desc
    limit 1
) as holder
where wanted.while <> ''
union all
select wanted.ordinal::int as ordinal, holder.job_id, holder.trace_id, holder.run_at, holder.created_at, holder.status
from wanted cross join lateral (
    select jobs.job_id, jobs.trace_id, jobs.run_at, jobs.created_at, jobs.status from jobs
    where jobs.owner_id = wanted.owner_id and jobs.policies -> 'unique' ->> 'key' = wanted.key
        and jobs.policies -> 'unique' is not null and jobs.created_at > now() - interval '1 ms' * wanted.for_ms
    order by jobs.created_at desc
    limit 1
) as holder
where wanted.while = '';

-- For each key, when the last job was due at its acceptance, if there is one, and the present instant.
-- name: ThrottleStarts :many
select wanted.place::int as place, now()::timestamptz as at, 
    coalesce(last.due_at, '0001-01-01Z')::timestamptz as due_at
from (
    select unnest(@places::int[]) as place, unnest(@owner_ids::text[]) as owner_id, unnest(@keys::text[]) as key
) as wanted left join lateral (
    select coalesce(jobs.run_at, jobs.created_at) as due_at from jobs
    where jobs.owner_id = wanted.owner_id and jobs.policies -> 'throttle' ->> 'key' = wanted.key
        and jobs.policies -> 'throttle' is not null
    order by coalesce(jobs.run_at, jobs.created_at) desc
    limit 1
) as last on true;
