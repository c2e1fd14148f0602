-- The ids of the matching jobs among the newest jobs of one source, how many match, and the last job that was looked
-- at. It looks at most_seen jobs, however few match. A source is an index in the order of ids. A parameter that is not
-- null chooses it, and the others read nothing. Only a search may have several sources, and a job can be in two of
-- them. Jobs of a trace have two sources, each with the jobs that the other lacks. The updated_at of an ended job is its end.
-- name: JobsSeen :one
with seen as materialized (
    select
        job_id,
        (sqlc.narg('statuses')::text[] is null or status = any (sqlc.narg('statuses')))
        and (sqlc.narg('job_type')::text is null or job_type = sqlc.narg('job_type'))
        and (sqlc.narg('queue')::text is null or queue = sqlc.narg('queue'))
        and (sqlc.narg('tag')::text is null or sqlc.narg('tag') = any (tags))
        and (sqlc.narg('since')::timestamptz is null or created_at >= sqlc.narg('since'))
        and (sqlc.narg('until')::timestamptz is null or created_at < sqlc.narg('until'))
        and (sqlc.narg('ended_since')::timestamptz is null or status in ('COMPLETED', 'FAILED', 'CANCELLED') and updated_at >= sqlc.narg('ended_since'))
        and (sqlc.narg('ended_until')::timestamptz is null or status in ('COMPLETED', 'FAILED', 'CANCELLED') and updated_at < sqlc.narg('ended_until'))
        and (sqlc.narg('ordering_key')::text is null or ordering_key = sqlc.narg('ordering_key'))
        and (sqlc.narg('error_code')::text is null or error_code = sqlc.narg('error_code'))
        and (sqlc.narg('trace_id')::uuid is null or trace_id = sqlc.narg('trace_id'))
        and (sqlc.narg('idempotency_key')::text is null or idempotency_key = sqlc.narg('idempotency_key'))
        and (sqlc.narg('owner')::text is null or owner_id = sqlc.narg('owner'))
        and (sqlc.narg('after')::uuid is null or sqlc.narg('after') = any (after_ids))
        and (sqlc.narg('batch_id')::uuid is null or batch_id = sqlc.narg('batch_id'))
        and (not @no_error_code::boolean or error_code is null)
        and case -- in this order: the message of a failure is read only if nothing else decides
            when sqlc.narg('search')::text is null then true
            when idempotency_key = sqlc.narg('search') then true
            when sqlc.narg('search_id')::uuid is not null then job_id = sqlc.narg('search_id') or trace_id = sqlc.narg('search_id')
            when error_code = sqlc.narg('search') then true
            when sqlc.narg('search_message')::text is null then false
            when sqlc.narg('search') = any (tags) then true
            when error_code is null then false
            else coalesce((
                select position(lower(sqlc.narg('search_message')) in lower(substring(left(failed.snapshot, 32768)
                    from '"lastError":\{"errorCode":"(?:[^"\\]|\\.)*","message":"(?!sealed:)((?:[^"\\]|\\.)*)"'))) > 0
                from jobs as failed where failed.job_id = source.job_id
            ), false)
        end as fits
    from (
        (
            select job_id, status, job_type, queue, tags, created_at, ordering_key, error_code, trace_id, idempotency_key, owner_id, after_ids, batch_id, updated_at
            from jobs
            where @by_id::boolean and job_id > @after_id::uuid and job_id < @before_id::uuid
            order by job_id desc limit @most_seen::int
        )
        union all
        ( -- each shelf in the order of ids: the planner does not know the order of several at once
            select shelved.* from unnest(@by_shelves::int[]) as shelf cross join lateral (
                select job_id, status, job_type, queue, tags, created_at, ordering_key, error_code, trace_id, idempotency_key, owner_id, after_ids, batch_id, updated_at
                from jobs
                where shelf_of(status, version) = shelf and job_id > @after_id and job_id < @before_id
                order by job_id desc limit @most_seen
            ) as shelved
            order by shelved.job_id desc limit @most_seen
        )
        union all
        ( -- the shelves of one owner, where completed jobs have one, too
            select shelved.* from unnest(@by_owned_shelves::int[]) as shelf cross join lateral (
                select job_id, status, job_type, queue, tags, created_at, ordering_key, error_code, trace_id, idempotency_key, owner_id, after_ids, batch_id, updated_at
                from jobs
                where owner_id = sqlc.narg('owner') and owner_id <> '' and coalesce(shelf_of(status, version), 10::smallint) = shelf
                    and job_id > @after_id and job_id < @before_id
                order by job_id desc limit @most_seen
            ) as shelved
            order by shelved.job_id desc limit @most_seen
        )
        union all
        (
            select job_id, status, job_type, queue, tags, created_at, ordering_key, error_code, trace_id, idempotency_key, owner_id, after_ids, batch_id, updated_at
            from jobs
            where sqlc.narg('by_ordering_key')::text is not null
                and ordering_key = sqlc.narg('by_ordering_key') and job_id > @after_id and job_id < @before_id
            order by job_id desc limit @most_seen
        )
        union all
        (
            select job_id, status, job_type, queue, tags, created_at, ordering_key, error_code, trace_id, idempotency_key, owner_id, after_ids, batch_id, updated_at
            from jobs
            where sqlc.narg('by_owned_ordering_key')::text is not null and owner_id = sqlc.narg('owner') and owner_id <> ''
                and ordering_key = sqlc.narg('by_owned_ordering_key') and job_id > @after_id and job_id < @before_id
            order by job_id desc limit @most_seen
        )
        union all
        (
            select job_id, status, job_type, queue, tags, created_at, ordering_key, error_code, trace_id, idempotency_key, owner_id, after_ids, batch_id, updated_at
            from jobs
            where sqlc.narg('by_error_code')::text is not null
                and error_code = sqlc.narg('by_error_code') and job_id > @after_id and job_id < @before_id
            order by job_id desc limit @most_seen
        )
        union all
        (
            select job_id, status, job_type, queue, tags, created_at, ordering_key, error_code, trace_id, idempotency_key, owner_id, after_ids, batch_id, updated_at
            from jobs
            where sqlc.narg('by_owned_error_code')::text is not null and owner_id = sqlc.narg('owner') and owner_id <> ''
                and error_code = sqlc.narg('by_owned_error_code') and job_id > @after_id and job_id < @before_id
            order by job_id desc limit @most_seen
        )
        union all
        (
            select job_id, status, job_type, queue, tags, created_at, ordering_key, error_code, trace_id, idempotency_key, owner_id, after_ids, batch_id, updated_at
            from jobs
            where sqlc.narg('by_job_id')::uuid is not null
                and job_id = sqlc.narg('by_job_id') and job_id > @after_id and job_id < @before_id
        )
        union all
        (
            select job_id, status, job_type, queue, tags, created_at, ordering_key, error_code, trace_id, idempotency_key, owner_id, after_ids, batch_id, updated_at
            from jobs
            where sqlc.narg('by_trace_id')::uuid is not null
                and (trace_id >= job_id or substring(uuid_send(trace_id) for 5) <> substring(uuid_send(job_id) for 5))
                and trace_id = sqlc.narg('by_trace_id') and job_id > @after_id and job_id < @before_id
            order by job_id desc limit @most_seen
        )
        union all
        (
            select job_id, status, job_type, queue, tags, created_at, ordering_key, error_code, trace_id, idempotency_key, owner_id, after_ids, batch_id, updated_at
            from jobs
            where sqlc.narg('by_trace_id') is not null -- the jobs of the same 256 ms, which are in no index of traces
                and job_id > greatest(sqlc.narg('by_trace_id'), @after_id)
                and job_id < least(sqlc.narg('trace_ends')::uuid, @before_id)
            order by job_id desc limit @most_seen
        )
        union all
        (
            select job_id, status, job_type, queue, tags, created_at, ordering_key, error_code, trace_id, idempotency_key, owner_id, after_ids, batch_id, updated_at
            from (
                select * from jobs
                where sqlc.narg('by_idempotency_key')::text is not null and idempotency_key = sqlc.narg('by_idempotency_key')
                offset 0 -- otherwise the planner may walk by id until it has found enough
            ) as keyed
            where job_id > @after_id and job_id < @before_id
            order by job_id desc limit @most_seen
        )
        union all
        (
            select job_id, status, job_type, queue, tags, created_at, ordering_key, error_code, trace_id, idempotency_key, owner_id, after_ids, batch_id, updated_at
            from jobs
            where sqlc.narg('by_owned_idempotency_key')::text is not null and owner_id = sqlc.narg('owner')
                and idempotency_key = sqlc.narg('by_owned_idempotency_key') and job_id > @after_id and job_id < @before_id
        )
        union all
        ( -- of the job's owner, as it is too
            select job_id, status, job_type, queue, tags, created_at, ordering_key, error_code, trace_id, idempotency_key, owner_id, after_ids, batch_id, updated_at
            from jobs
            where sqlc.narg('by_after')::uuid is not null and after_ids is not null
                and owner_id = (select named.owner_id from jobs as named where named.job_id = sqlc.narg('by_after'))
                and job_id > @after_id and job_id < @before_id
            order by job_id desc limit @most_seen
        )
        union all
        ( -- the jobs of a fan-out, of which there are at most 10,000; their index is in the order of the elements
            select elements.* from (
                select job_id, status, job_type, queue, tags, created_at, ordering_key, error_code, trace_id, idempotency_key, owner_id, after_ids, batch_id, updated_at
                from jobs
                where sqlc.narg('by_fan_out_id')::uuid is not null and fan_out_id = sqlc.narg('by_fan_out_id')
                offset 0 -- as above
            ) as elements
            where elements.job_id > @after_id and elements.job_id < @before_id
            order by elements.job_id desc limit @most_seen
        )
        union all
        ( -- the states in a batch, read one by one like the shelves
            select batched.* from unnest(@batch_states::text[]) as state cross join lateral (
                select job_id, status, job_type, queue, tags, created_at, ordering_key, error_code, trace_id, idempotency_key, owner_id, after_ids, batch_id, updated_at
                from jobs
                where batch_id = sqlc.narg('batch_id') and status = state and job_id > @after_id and job_id < @before_id
                order by job_id desc limit @most_seen
            ) as batched
            order by batched.job_id desc limit @most_seen
        )
    ) as source
    order by job_id desc
    limit @most_seen
)
select
    array(select job_id from seen where fits order by job_id desc limit @max_jobs::int offset @skip::int)::uuid[] as job_ids,
    (select count(*) from seen where fits)::bigint as fit,
    (select count(*) from seen)::bigint as seen,
    coalesce((select job_id from seen order by job_id limit 1), @after_id)::uuid as last_id;

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
