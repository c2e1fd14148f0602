-- name: LogInsertMany :exec
insert into attempt_logs (job_id, attempt, first_line, lines)
select
    unnest(@job_ids::uuid[]),
    unnest(@attempts::int[]),
    unnest(@first_lines::int[]),
    unnest(@lines::json[])
on conflict do nothing;

-- The newest parts first, until they have max_bytes together, and at least one part.
-- name: LogsOfJob :many
select attempt, first_line, lines from (
    select attempt, first_line, lines,
        sum(octet_length(lines::text)) over (order by attempt desc, first_line desc rows unbounded preceding)
            - octet_length(lines::text) as later
    from attempt_logs
    where attempt_logs.job_id = @job_id and (sqlc.narg('attempt')::int is null or attempt = sqlc.narg('attempt'))
        and (attempt, first_line) < (@before_attempt::int, @before_line::int)
        and (sqlc.narg('owner')::text is null
            or exists (select from jobs where jobs.job_id = @job_id and jobs.owner_id = sqlc.narg('owner')))
    order by attempt desc, first_line desc
    limit @max_parts::int
) as part
where later <= @max_bytes::bigint
order by attempt desc, first_line desc;

-- The end of a job's log. Later parts come after it.
-- name: LogsEnd :one
select attempt, first_line from attempt_logs
where attempt_logs.job_id = @job_id
order by attempt desc, first_line desc
limit 1;

-- The parts after a position, oldest first, until they have max_bytes together, and at least one part.
-- name: LogsAfter :many
select attempt, first_line, lines from (
    select attempt, first_line, lines,
        sum(octet_length(lines::text)) over (order by attempt, first_line rows unbounded preceding)
            - octet_length(lines::text) as earlier
    from attempt_logs
    where attempt_logs.job_id = @job_id and (attempt, first_line) > (@after_attempt::int, @after_line::int)
    order by attempt, first_line
    limit @max_parts::int
) as part
where earlier <= @max_bytes::bigint
order by attempt, first_line;
