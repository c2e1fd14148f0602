-- name: ScheduleInsert :execrows
insert into schedules (
    schedule_id, owner_id, name, cron, time_zone, anchor_at, job, overlap, missed, paused, start_at, end_at, next_at,
    defined_by
) values (
    @schedule_id, @owner_id, @name, @cron, @time_zone, @anchor_at, @job, @overlap, @missed, @paused,
    sqlc.narg('start_at'), sqlc.narg('end_at'), sqlc.narg('next_at'), sqlc.narg('defined_by')
)
on conflict (name, owner_id) do nothing;

-- name: ScheduleReplace :exec
update schedules set
    cron = @cron, time_zone = @time_zone, anchor_at = @anchor_at, job = @job, overlap = @overlap, missed = @missed,
    paused = @paused, start_at = sqlc.narg('start_at'), end_at = sqlc.narg('end_at'), next_at = sqlc.narg('next_at'),
    updated_at = @updated_at
where schedule_id = @schedule_id;

-- Several owners may use one name, and two rows are enough to show that. The schedule without an owner comes first.
-- name: SchedulesNamed :many
select * from schedules
where name = @name and (sqlc.narg('owner_id')::text is null or owner_id = sqlc.narg('owner_id'))
order by owner_id
limit 2;

-- name: ScheduleLock :one
select * from schedules where schedule_id = @schedule_id for update;

-- The instant from which a locked schedule may fire again. The transaction that held the lock before may have fired all
-- ticks up to clock_timestamp(), which is later than this transaction's now(), and its clock may have been ahead of
-- this one.
-- name: ScheduleBegin :one
select clock_timestamp()::timestamptz as at, greatest(clock_timestamp(), (
    select at + interval '1 us' from schedule_ticks where schedule_id = @schedule_id order by at desc limit 1
))::timestamptz as begin_at;

-- Jobs come until they have max_bytes together; of the schedules after that the job is null.
-- name: SchedulesList :many
select
    schedule_id, owner_id, name, cron, time_zone, anchor_at, overlap, missed, paused, start_at, end_at, next_at, last_at,
    last_job_id, created_at, updated_at, defined_by,
    coalesce(case when sum(octet_length(job::text)) over listed - octet_length(job::text) <= @max_bytes::bigint
        then job end, 'null')::json as job
from schedules
where (name, owner_id) > (@after_name::text, @after_owner::text)
    and (sqlc.narg('owner_id')::text is null or owner_id = sqlc.narg('owner_id'))
window listed as (order by name, owner_id rows unbounded preceding)
order by name, owner_id
limit @max_schedules::int;

-- name: SchedulePause :exec
update schedules set paused = @paused, next_at = sqlc.narg('next_at'), updated_at = now()
where schedule_id = @schedule_id;

-- name: SchedulesUndefine :execrows
delete from schedules where owner_id = @owner_id and defined_by = @defined_by and name <> all (@names::text[]);

-- name: ScheduleDelete :exec
delete from schedules where schedule_id = @schedule_id;

-- Owners take turns, however many due schedules each has. Concurrent passes skip each other's rows.
-- name: SchedulesDue :many
select schedules.* from (
    select schedule_id, next_at, row_number() over (partition by owner_id order by next_at) as turn
    from schedules
    where next_at <= now() and not paused and schedule_id <> all (@held_ids::uuid[])
        and owner_id <> all (@resting_owners::text[])
) as due join schedules on schedules.schedule_id = any (array[due.schedule_id])
where schedules.next_at <= now() and not schedules.paused
order by due.turn, due.next_at
limit @max_schedules::int
for update of schedules skip locked;

-- name: SchedulesCount :one
select count(*) from (select from schedules where owner_id = @owner_id limit @most::int) as few;

-- name: SchedulesFired :exec
with input as (
    select
        unnest(@schedule_ids::uuid[])                                                     as schedule_id,
        nullif(unnest(@next_ats::timestamptz[]), '0001-01-01Z')                           as next_at,
        nullif(unnest(@last_ats::timestamptz[]), '0001-01-01Z')                           as last_at,
        nullif(unnest(@last_job_ids::uuid[]), '00000000-0000-0000-0000-000000000000')     as last_job_id
)
update schedules set
    next_at     = input.next_at,
    last_at     = coalesce(input.last_at, schedules.last_at),
    last_job_id = coalesce(input.last_job_id, schedules.last_job_id)
from input
where schedules.schedule_id = any (array[input.schedule_id]);

-- name: ScheduleNext :many
select next_at, clock_timestamp()::timestamptz as at from schedules
where next_at is not null and not paused and schedule_id <> all (@held_ids::uuid[])
    and owner_id <> all (@resting_owners::text[])
order by next_at
limit 1;

-- name: SchedulesChanged :exec
select pg_notify(coalesce(nullif(current_schema(), 'public'), 'jobweaver') || '_schedules', '');

-- The beginning of a sealed text names the key that sealed it. @last_id ends the walk; nil: the walk continues to the
-- last schedule.
-- name: ScheduleHeads :many
select schedule_id, substr(job::text, 1, 32)::text as head from schedules
where schedule_id > @after_id::uuid
    and (@last_id::uuid = '00000000-0000-0000-0000-000000000000' or schedule_id <= @last_id)
order by schedule_id;

-- name: ScheduleSeal :exec
update schedules set job = @job where schedule_id = @schedule_id;

-- name: ScheduleCancelsKeep :exec
insert into schedule_cancels (job_id) select unnest(@job_ids::uuid[]) on conflict do nothing;

-- name: ScheduleCancelsOpen :many
select job_id from schedule_cancels order by job_id limit @max_jobs::int;

-- name: ScheduleCancelsDrop :exec
delete from schedule_cancels where job_id = any (@job_ids::uuid[]);
