-- In the order of ids, so that two transactions that insert the same records wait for each other and do not deadlock.
-- name: RejectedInsert :execrows
insert into rejected_records (
    rejected_id, function, topic, partition, record_offset, key, headers, value, bytes, whole, truncated, reason, trace_id,
    recorded_at, rejected_at
)
select
    unnest(@rejected_ids::uuid[]) as rejected_id,
    unnest(@functions::text[]),
    unnest(@topics::text[]),
    nullif(unnest(@partitions::int[]), -1),
    nullif(unnest(@record_offsets::bigint[]), -1),
    unnest(@keys::bytea[]),
    unnest(@headers::json[]),
    unnest(@record_values::bytea[]),
    unnest(@byte_counts::int[]),
    unnest(@wholes::boolean[]),
    unnest(@truncateds::boolean[]),
    unnest(@reasons::text[]),
    nullif(unnest(@trace_ids::uuid[]), '00000000-0000-0000-0000-000000000000'),
    nullif(unnest(@recorded_ats::timestamptz[]), '0001-01-01Z'),
    least(unnest(@rejected_ats::timestamptz[]), now())
order by rejected_id
on conflict (rejected_id) do nothing;

-- Deletes the oldest records beyond the limits: a number of records, and a number of bytes, counted from the newest
-- record.
-- name: RejectedTrim :execrows
with counted as (
    select
        rejected_number,
        row_number() over newest_first as n,
        sum(bytes) over newest_first as total
    from rejected_records
    window newest_first as (order by rejected_number desc)
), last_to_go as (
    select rejected_number from counted
    where n > @max_records::bigint or total > @max_bytes::bigint
    order by rejected_number desc
    limit 1
)
delete from rejected_records using last_to_go where rejected_records.rejected_number <= last_to_go.rejected_number;

-- Newest first. The table is small, so the filters need no index.
-- name: RejectedList :many
select
    rejected_number, rejected_id, function, topic, partition, record_offset, bytes, whole, truncated, reason, trace_id,
    recorded_at, rejected_at, redriven_at, redriven_by
from rejected_records
where rejected_number < @before::bigint
    and (sqlc.narg('function')::text is null or function = sqlc.narg('function'))
    and (sqlc.narg('topic')::text is null or topic = sqlc.narg('topic'))
    and (sqlc.narg('since')::timestamptz is null or rejected_at >= sqlc.narg('since'))
    and (sqlc.narg('until')::timestamptz is null or rejected_at < sqlc.narg('until'))
    and (sqlc.narg('redriven')::boolean is null or (redriven_at is not null) = sqlc.narg('redriven'))
order by rejected_number desc
limit @max_records::int;

-- name: RejectedGet :many
select * from rejected_records where rejected_id = @rejected_id::uuid;

-- Locks the record until it is on its topic, so that no other process redrives it meanwhile.
-- name: RejectedHold :many
select * from rejected_records where rejected_id = @rejected_id::uuid for update;

-- name: RejectedRedriven :one
update rejected_records set redriven_at = now(), redriven_by = @redriven_by::text
where rejected_id = @rejected_id::uuid and redriven_at is null
returning redriven_at;

-- name: RejectedDiscard :many
delete from rejected_records where rejected_id = @rejected_id::uuid
returning
    rejected_number, rejected_id, function, topic, partition, record_offset, bytes, whole, truncated, reason, trace_id,
    recorded_at, rejected_at, redriven_at, redriven_by;

-- Deletes some of the records that were rejected before an instant.
-- name: RejectedForget :execrows
with old as (
    select rejected_number from rejected_records
    where rejected_at < now() - @age::interval
    order by rejected_at
    limit @max_records::int
)
delete from rejected_records using old where rejected_records.rejected_number = any (array[old.rejected_number]);
