-- A recorded tick stays as it is: after the clock was set back the same tick comes again.
-- name: TicksRecord :exec
insert into schedule_ticks (schedule_id, at, outcome, reason, job_id)
select
    unnest(@schedule_ids::uuid[]),
    unnest(@ats::timestamptz[]),
    unnest(@outcomes::text[]),
    unnest(@reasons::text[]),
    nullif(unnest(@job_ids::uuid[]), '00000000-0000-0000-0000-000000000000')
on conflict (schedule_id, at) do nothing;

-- name: TicksList :many
select at, outcome, reason, job_id, recorded_at from schedule_ticks
where schedule_id = @schedule_id and at < @before_at::timestamptz
order by at desc
limit @max_ticks::int;

-- Those of a schedule's last hundred jobs that have not ended, as far as the API knows.
-- name: ScheduleJobsNotEnded :many
select jobs.job_id
from (
    select schedule_ticks.job_id from schedule_ticks
    where schedule_ticks.schedule_id = @schedule_id and schedule_ticks.job_id is not null
    order by at desc
    limit 100
) as fired join jobs on jobs.job_id = any (array[fired.job_id])
where jobs.status not in ('COMPLETED', 'FAILED', 'CANCELLED')
order by fired.job_id;

-- Deletes the ticks of some schedules that are older than thirty days or beyond the last thousand, but never a tick
-- whose job has not ended, because that tick shows that the schedule is busy. The job is looked up for each tick: a
-- join could read all jobs.
-- name: TicksForget :many
with page as (
    select schedules.schedule_id, coalesce((
        select kept.at from schedule_ticks as kept where kept.schedule_id = schedules.schedule_id
        order by kept.at desc offset 999 limit 1
    ), '-infinity') as oldest
    from schedules
    where schedules.schedule_id > @after_id::uuid
    order by schedules.schedule_id
    limit @max_schedules::int
), forgotten as (
    delete from schedule_ticks using page
    where schedule_ticks.schedule_id = any (array[page.schedule_id])
        and schedule_ticks.at < greatest(page.oldest, now() - interval '30 days')
        and coalesce((
            select jobs.status in ('COMPLETED', 'FAILED', 'CANCELLED') from jobs where jobs.job_id = schedule_ticks.job_id
        ), true)
)
select schedule_id from page order by schedule_id;
