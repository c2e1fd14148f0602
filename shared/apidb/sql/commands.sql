-- name: JobLock :one
select owner_id, status, version, attempt, command_seq, trace_id, expires_at, queue, now()::timestamptz as at from jobs
where job_id = @job_id and (sqlc.narg('owner')::text is null or owner_id = sqlc.narg('owner'))
for update;

-- name: CommandOfJob :one
select number, command, by_whom, run_at, change_hash from commands where job_id = @job_id;

-- Those of these jobs that a later run of their flow has replaced, or whose fan-out it has. They do not run again.
-- name: JobsReplaced :many
select job_id from jobs
where job_id = any (@job_ids::uuid[]) and batch_id is not null and exists (
    select from replaced_jobs
    where replaced_jobs.batch_id = jobs.batch_id and replaced_jobs.job_id = coalesce(jobs.fan_out_id, jobs.job_id) offset 0
);

-- Stores a command under the job's next number, in place of a wake that is not answered yet.
-- name: CommandKeep :one
with numbered as (
    update jobs set
        command_seq = command_seq + 1,
        cancel_requested_at = case when 'cancel' = @command::text then now() else cancel_requested_at end,
        held = case when held then false end -- a held job is released, so that the scheduler can apply the command
    where jobs.job_id = @job_id
    returning jobs.job_id, jobs.command_seq
)
insert into commands (job_id, number, command, by_whom, run_at, change, change_hash)
select
    numbered.job_id, numbered.command_seq, @command::text, @by_whom::text,
    coalesce(sqlc.narg('run_at')::timestamptz, now() + interval '1 ms' * sqlc.narg('delay_ms')::bigint),
    sqlc.narg('change')::json, sqlc.narg('change_hash')::bytea
from numbered
on conflict (job_id) do update set
    number = excluded.number, command = excluded.command, by_whom = excluded.by_whom, created_at = default, run_at = excluded.run_at,
    operation_id = default, change = sqlc.narg('change')::json, change_hash = excluded.change_hash
returning commands.number, commands.run_at;

-- The unanswered commands, whenever another age of times_due has passed. Changes are included until they have
-- max_bytes together; after that the change is null.
-- name: CommandsUnconfirmed :many
with pass as (
    select @since::timestamptz as since, @until::timestamptz as until
)
select commands.job_id, commands.number, commands.command, commands.by_whom, commands.run_at, jobs.trace_id, jobs.version,
    (case when sum(coalesce(octet_length(commands.change::text), 0)) over (order by commands.job_id) <= @max_bytes::bigint
        then commands.change end)::json as change
from pass cross join commands join jobs on jobs.job_id = any (array[commands.job_id])
where commands.job_id > @after_id::uuid
    and commands.created_at <= pass.until - interval '10 s'
    and times_due(pass.until - commands.created_at) > times_due(pass.since - commands.created_at)
order by commands.job_id
limit @max_commands::int;
