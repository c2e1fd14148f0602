-- name: LogInsertMany :exec
insert into attempt_logs (job_id, attempt, first_line, lines)
select
    unnest(@job_ids::uuid[]),
    unnest(@attempts::int[]),
    unnest(@first_lines::int[]),
    unnest(@lines::json[])
on conflict do nothing;

-- name: LogsOfJob :many
select attempt, first_line, lines from attempt_logs
where attempt_logs.job_id = @job_id and (sqlc.narg('attempt')::int is null or attempt = sqlc.narg('attempt'))
    and (sqlc.narg('owner')::text is null
        or exists (select from jobs where jobs.job_id = @job_id and jobs.owner_id = sqlc.narg('owner')))
order by attempt, first_line;
