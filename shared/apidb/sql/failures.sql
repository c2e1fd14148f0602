-- name: FailureTakeEntries :many
delete from failure_entries
where id = any (array(select id from failure_entries order by id limit @max_entries::int))
returning *;

-- Rows are compared as in TallyFind, and for the same reason.
-- name: FailuresFind :many
with input as (
    select
        unnest(@everyones::boolean[]) as everyone,
        unnest(@owner_ids::text[])    as owner_id,
        unnest(@job_types::text[])    as job_type,
        unnest(@error_codes::text[])  as error_code
)
select found.* from input cross join lateral (
    select * from failures
    where (failures.everyone, failures.owner_id, failures.job_type, failures.error_code)
        >= (input.everyone, input.owner_id, input.job_type, input.error_code)
        and (failures.everyone, failures.owner_id, failures.job_type, failures.error_code)
        <= (input.everyone, input.owner_id, input.job_type, input.error_code)
    offset 0
) as found;

-- name: FailuresPut :exec
insert into failures (everyone, owner_id, job_type, error_code, kept, first_at, last_at, last_id, hours)
select
    unnest(@everyones::boolean[]), unnest(@owner_ids::text[]), unnest(@job_types::text[]), unnest(@error_codes::text[]),
    unnest(@kepts::bigint[]), unnest(@first_ats::timestamptz[]), unnest(@last_ats::timestamptz[]), unnest(@last_ids::uuid[]),
    unnest(@hours::json[])
on conflict (everyone, owner_id, job_type, error_code) do update set
    kept = excluded.kept, first_at = excluded.first_at, last_at = excluded.last_at, last_id = excluded.last_id,
    hours = excluded.hours;

-- Codes come and go, so an error that no job has any more is forgotten.
-- name: FailuresForget :execrows
delete from failures
where ctid = any (array(
    select f.ctid from failures as f where f.kept <= 0 and f.last_at < @before::timestamptz order by f.last_at limit @max_failures::int
));

-- The failures of all owners together or of one owner, those of most jobs first.
-- name: FailuresOf :many
select * from failures
where everyone = @everyone::boolean and owner_id = @owner_id::text and kept > 0
order by kept desc
limit @max_failures::int;

-- What FailuresOf does not count yet.
-- name: FailureEntriesOf :many
select * from failure_entries
where @everyone::boolean or owner_id = @owner_id::text
order by id;
