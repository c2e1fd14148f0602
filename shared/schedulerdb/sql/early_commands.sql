-- name: EarlyCommandsKeep :exec
-- Keeps commands for jobs that have not arrived, and forgets those whose jobs have not come for a day.
with forgotten as (
    delete from early_commands where kept_at < now() - interval '1 day'
)
insert into early_commands (job_id, number, command)
select unnest(@job_ids::uuid[]), unnest(@numbers::int[]), unnest(@commands::json[])
on conflict do nothing;

-- name: EarlyCommands :many
select job_id, command from early_commands where job_id = any (@job_ids::uuid[]) order by job_id, number;

-- name: EarlyCommandsDrop :exec
delete from early_commands where job_id = any (@job_ids::uuid[]);
