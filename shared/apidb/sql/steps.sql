-- Keeps a step of a job, which the caller has locked, and returns it as it is stored: the first save of a name wins.
-- There is no row if the job has too many steps, or too much of results.
-- name: StepKeep :one
with kept as (
    select count(*) as steps, coalesce(sum(bytes), 0) as bytes from steps where steps.job_id = @job_id
), added as (
    insert into steps (job_id, name, attempt, until_at, took_ms, bytes, result)
    select @job_id, @name::text, @attempt::int, sqlc.narg('until_at')::timestamptz, sqlc.narg('took_ms')::bigint, @bytes::int, @result::text
    from kept
    where kept.steps < @max_steps::int and kept.bytes + @bytes::int <= @max_bytes::bigint
    on conflict (job_id, name) do nothing
    returning name, attempt, saved_at, until_at, took_ms, bytes, result
), marked as (
    update jobs set waits = true where jobs.job_id = @job_id and jobs.waits is null and exists (select from added)
)
select name, attempt, saved_at, until_at, took_ms, bytes, result from added
union all
select name, attempt, saved_at, until_at, took_ms, bytes, result
from steps where steps.job_id = @job_id and steps.name = @name::text;

-- A page of the steps of a job, in the order of names: at least one, and otherwise about so many bytes of results.
-- name: StepsAfter :many
select name, attempt, saved_at, until_at, took_ms, bytes, result, more::boolean as more from (
    select name, attempt, saved_at, until_at, took_ms, bytes, result,
        sum(bytes) over (order by name) - bytes as before, lead(name) over (order by name) is not null as more
    from steps
    where steps.job_id = @job_id and name > @after_name::text and exists (
        select from jobs
        where jobs.job_id = @job_id and (sqlc.narg('owner')::text is null or jobs.owner_id = sqlc.narg('owner'))
    )
) as following
where before < @max_bytes::bigint
order by name;

-- The steps of a job in the order in which they were saved. The largest results are left out if all are too large.
-- name: StepsOfJob :many
select name, attempt, saved_at, until_at, took_ms, bytes,
    case when sum(bytes) over (order by bytes, saved_at, name) <= @max_bytes::bigint then result else '' end::text as result
from steps
where job_id = @job_id
order by saved_at, name;
