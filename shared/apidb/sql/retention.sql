-- Deletes the jobs of one page that ended too long ago. It returns how many jobs it has looked at, the last of them,
-- and how many it deleted. A job with a command stays until the command is answered, or is a day old: then no
-- scheduler knows the job. A command that was stored while the deletion waited for the job has raised its number. A job of
-- a flow stays while the flow has not ended, and while a failed one is kept: other jobs of it may need its output.
-- name: JobsExpire :one
with page as (
    select job_id, status, version, command_seq, updated_at, batch_id from jobs
    where job_id > @after_id::uuid and job_id < @before_id::uuid
    order by job_id
    limit @max_jobs::int
), old as (
    select job_id, version, command_seq from page
    where not exists (
            select from commands where commands.job_id = page.job_id and commands.created_at > now() - interval '1 day' offset 0
        ) and updated_at < case status
        when 'COMPLETED' then sqlc.narg('completed_before')::timestamptz
        when 'FAILED'    then sqlc.narg('failed_before')::timestamptz
        when 'CANCELLED' then sqlc.narg('cancelled_before')::timestamptz
    end and (batch_id is null or not exists (
        select from batches
        where batches.batch_id = page.batch_id and batches.graph is not null and (
            batches.finished_at is null or batches.status <> 'COMPLETED' and batches.status <> 'CANCELLED'
                and coalesce(batches.finished_at >= sqlc.narg('failed_before'), true)
        )
        offset 0
    ))
), gone as (
    delete from jobs using old
    where jobs.job_id = any (array[old.job_id]) and jobs.version = old.version and jobs.command_seq = old.command_seq
    returning jobs.job_id
), remembered as (
    insert into deleted_jobs (job_id) select job_id from gone order by job_id on conflict do nothing
)
select
    (select count(*) from page)::bigint as seen,
    coalesce((select job_id from page order by job_id desc limit 1), @after_id)::uuid as last_id,
    (select count(*) from gone)::bigint as gone;

-- Forgets the ids of one page of jobs that were deleted before an instant.
-- name: DeletedForget :one
with page as (
    select job_id, deleted_at from deleted_jobs
    where job_id > @after_id::uuid and job_id < @before_id::uuid
    order by job_id
    limit @max_rows::int
), gone as (
    delete from deleted_jobs using page
    where deleted_jobs.job_id = any (array[page.job_id]) and page.deleted_at < @deleted_before::timestamptz
    returning deleted_jobs.job_id
)
select
    (select count(*) from page)::bigint as seen,
    coalesce((select job_id from page order by job_id desc limit 1), @after_id)::uuid as last_id,
    (select count(*) from gone)::bigint as gone;

-- The same as JobsExpire for log lines, which can arrive after their job is deleted.
-- name: LogsExpire :one
with page as (
    select job_id from attempt_logs
    where job_id > @after_id::uuid and job_id < @before_id::uuid
    order by job_id
    limit @max_rows::int
), orphan as (
    select distinct job_id from page where not exists (select from jobs where jobs.job_id = page.job_id offset 0)
), gone as (
    delete from attempt_logs using orphan where attempt_logs.job_id = any (array[orphan.job_id])
    returning attempt_logs.job_id
)
select
    (select count(*) from page)::bigint as seen,
    coalesce((select job_id from page order by job_id desc limit 1), @after_id)::uuid as last_id,
    (select count(*) from gone)::bigint as gone;
