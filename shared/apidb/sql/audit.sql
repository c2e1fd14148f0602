-- name: AuditInsert :exec
insert into audit_log (owner_id, actor, action, resource, job_ids, remote_addr, user_agent, trace_id, details)
select
    unnest(@owner_ids::text[]), unnest(@actors::text[]), unnest(@actions::text[]), unnest(@resources::text[]),
    unnest(@job_ids::text[])::uuid[], unnest(@remote_addrs::text[]), unnest(@user_agents::text[]),
    unnest(@trace_ids::uuid[]), nullif(unnest(@details::text[]), '')::json;

-- Newest first, like all lists of the log. The other filters are applied to the rows that are read.
-- name: AuditList :many
select * from audit_log
where audit_id < @before::bigint
    and (sqlc.narg('actor')::text is null or actor = sqlc.narg('actor'))
    and (sqlc.narg('action')::text is null or action = sqlc.narg('action'))
    and (sqlc.narg('since')::timestamptz is null or at >= sqlc.narg('since'))
    and (sqlc.narg('until')::timestamptz is null or at < sqlc.narg('until'))
order by audit_id desc
limit @max_entries::int;

-- name: AuditListOfOwner :many
select * from audit_log
where owner_id = @owner_id::text and audit_id < @before::bigint
    and (sqlc.narg('actor')::text is null or actor = sqlc.narg('actor'))
    and (sqlc.narg('action')::text is null or action = sqlc.narg('action'))
    and (sqlc.narg('since')::timestamptz is null or at >= sqlc.narg('since'))
    and (sqlc.narg('until')::timestamptz is null or at < sqlc.narg('until'))
order by audit_id desc
limit @max_entries::int;

-- The index of jobs finds few entries, which are sorted afterwards.
-- name: AuditListOfJob :many
with found as materialized (
    select * from audit_log where job_ids <> '{}' and job_ids @> array[@job_id::uuid]
)
select * from found
where (@everyone::boolean or owner_id = @owner_id::text) and audit_id < @before::bigint
    and (sqlc.narg('actor')::text is null or actor = sqlc.narg('actor'))
    and (sqlc.narg('action')::text is null or action = sqlc.narg('action'))
    and (sqlc.narg('since')::timestamptz is null or at >= sqlc.narg('since'))
    and (sqlc.narg('until')::timestamptz is null or at < sqlc.narg('until'))
order by audit_id desc
limit @max_entries::int;

-- No function may delete entries itself, so a function of the database does it.
-- name: AuditForget :one
select audit_forget(@age::interval, @max_entries::int)::bigint as forgotten;
