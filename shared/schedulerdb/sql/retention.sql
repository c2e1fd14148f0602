-- name: JobsOld :many
-- A page of old jobs, in the order of their ids, and whether each is to be deleted or forgotten. It locks no row. A job
-- of a flow stays while another one has not ended, or has failed and is kept: it may need the output of this one.
select job_id,
       coalesce(deleted_at is null and finished_at < case status
           when 'COMPLETED' then sqlc.narg('completed_before')::timestamptz
           when 'FAILED'    then sqlc.narg('failed_before')::timestamptz
           when 'CANCELLED' then sqlc.narg('cancelled_before')::timestamptz
       end and (flow_id is null or not exists (
           select from jobs
           where jobs.flow_id = old.flow_id and jobs.deleted_at is null and jobs.status not in ('COMPLETED', 'CANCELLED')
               and jobs.status = any (case when old.status = 'FAILED'
                   then '{SCHEDULED,PENDING,QUEUED,RUNNING,WAITING,RETRYING}'::text[]
                   else '{SCHEDULED,PENDING,QUEUED,RUNNING,WAITING,RETRYING,FAILED}' end)
           offset 0
       )), false)::boolean as is_over,
       coalesce(deleted_at < @deleted_before::timestamptz, false)::boolean as is_forgotten
from (
    (select job_id, status, finished_at, deleted_at, flow_id from jobs
     where job_id > @after_id::uuid and job_id <= @until_id::uuid
     order by job_id
     limit @max_jobs::int)
    union all
    (select job_id, 'COMPLETED', finished_at, deleted_at, flow_id from ended
     where job_id > @after_id::uuid and job_id <= @until_id::uuid
     order by job_id
     limit @max_jobs::int)
) old
order by job_id
limit @max_jobs::int;

-- name: JobsRetire :many
-- Reduces ended jobs to their tombstones, as JobsDelete does. A locked job is left for the next walk. A job that was
-- retried meanwhile has not ended long enough ago.
with over as (
    select job_id from jobs
    where job_id = any (@job_ids::uuid[])
      and deleted_at is null
      and finished_at < case status
          when 'COMPLETED' then sqlc.narg('completed_before')::timestamptz
          when 'FAILED'    then sqlc.narg('failed_before')::timestamptz
          when 'CANCELLED' then sqlc.narg('cancelled_before')::timestamptz
      end
    for update skip locked
)
update jobs
set version      = jobs.version + 1,
    deleted_at   = now(),
    payload      = 'null',
    spec         = '{}',
    event        = null,
    output       = null,
    last_command = null,
    moves        = 1,
    history      = json_build_object('at', jobs.finished_at, 'to', jobs.status, 'attempt', jobs.attempt)::text,
    updated_at   = now()
from over
where jobs.job_id = any (array[over.job_id])
  and jobs.status in ('COMPLETED', 'FAILED', 'CANCELLED')
returning jobs.job_id, jobs.trace_id, jobs.status, jobs.version, jobs.attempt, jobs.error_code, jobs.finished_at,
    jobs.updated_at, jobs.deleted_at;

-- name: EndedRetire :many
-- Does the same for completed jobs in ended.
with over as (
    select job_id from ended
    where job_id = any (@job_ids::uuid[])
      and deleted_at is null
      and finished_at < sqlc.narg('completed_before')::timestamptz
    for update skip locked
)
update ended
set version      = ended.version + 1,
    deleted_at   = now(),
    payload      = 'null',
    spec         = '{}',
    event        = null,
    output       = null,
    last_command = null,
    moves        = 1,
    history      = json_build_object('at', ended.finished_at, 'to', 'COMPLETED', 'attempt', ended.attempt)::text,
    updated_at   = now()
from over
where ended.job_id = any (array[over.job_id])
returning ended.job_id, ended.trace_id, 'COMPLETED'::text as status, ended.version, ended.attempt,
    null::text as error_code, ended.finished_at, ended.updated_at, ended.deleted_at;

-- name: EndedCohortsOld :many
-- A page of jobs that completed in cohorts, in the order of their blocks, and whether all of a row are to be deleted.
select e.block_id, e.places, (e.ended_at < @completed_before::timestamptz)::boolean as is_over
from ended_cohorts e
where e.block_id >= @after_id::uuid and e.block_id <= @until_id::uuid
order by e.block_id, e.places
limit @most::int;

-- name: EndedCohortsRetire :many
-- Moves those jobs to ended, as tombstones.
with over as (
    select e.block_id, e.places
    from rows from (unnest(@block_ids::uuid[]), unnest(@places::bigint[])) as old (block_id, places)
    join ended_cohorts e on e.block_id = any (array[old.block_id]) and e.places = old.places
    for update of e skip locked
), gone as (
    delete from ended_cohorts e using over where e.block_id = any (array[over.block_id]) and e.places = over.places
)
insert into ended (job_id, trace_id, job_type, queue, payload, spec, version, attempt, retry_count, command_seq, history,
                   moves, started_at, finished_at, created_at, updated_at, deleted_at, owner_id, fairness_key)
select m.job_id, m.trace_id, m.job_type, m.queue, 'null', '{}', m.version + 1, m.attempt, 0, 0,
       json_build_object('at', m.finished_at, 'to', 'COMPLETED', 'attempt', m.attempt)::text,
       1, m.started_at, m.finished_at, m.created_at, now(), now(), m.owner_id, m.fairness_key
from over
cross join lateral (
    select e.job_id, e.trace_id, e.job_type, e.queue, e.version, e.attempt, e.started_at, e.finished_at, e.created_at, e.owner_id,
           e.fairness_key
    from ended_members e where e.block_id = over.block_id and e.places = over.places
    offset 0
) m
returning job_id, trace_id, 'COMPLETED'::text as status, version, attempt, null::text as error_code, finished_at, updated_at,
    deleted_at;

-- name: JobsForget :one
-- Removes tombstones: no record can bring these jobs back any more. It returns how many it has removed.
with forgotten as (
    delete from jobs
    where job_id = any (array(
        select job_id from jobs
        where job_id = any (@job_ids::uuid[])
          and deleted_at < @deleted_before::timestamptz
        for update skip locked
    ))
    returning job_id
), forgotten_ended as (
    delete from ended
    where job_id = any (array(
        select job_id from ended
        where job_id = any (@job_ids::uuid[])
          and deleted_at < @deleted_before::timestamptz
        for update skip locked
    ))
    returning job_id
)
select ((select count(*) from forgotten) + (select count(*) from forgotten_ended))::bigint as forgotten;
