-- The queues that jobs may name, and those that are being removed.
-- name: QueuesAll :many
select * from queues where state <> 'REMOVED' order by name;

-- name: QueueByName :one
select * from queues where name = @name;

-- name: QueuesCount :one
select count(*) from queues where state <> 'REMOVED';

-- name: QueueCreate :one
insert into queues (name, workers, created_by) values (@name, @workers, @created_by)
on conflict (name) do update set
    workers     = excluded.workers,
    state       = 'ACTIVE',
    created_at  = now(),
    created_by  = excluded.created_by,
    removing_at = null,
    removed_at  = null
returning *;

-- name: QueueKeep :one
update queues set state = 'ACTIVE', removing_at = null where name = @name and state = 'REMOVING' returning *;

-- Also of a removed queue, for which a job has come after all.
-- name: QueueRemoving :one
update queues set state = 'REMOVING', removing_at = now(), removed_at = null
where name = @name and state <> 'REMOVING' returning *;

-- name: QueueRemoved :exec
update queues set state = 'REMOVED', removed_at = now() where name = @name and state = 'REMOVING';

-- Removed queues are remembered for longer than their jobs are kept by default.
-- name: QueuesForget :exec
delete from queues where state = 'REMOVED' and removed_at < now() - interval '400 days';

-- The queues whose removal goes on, and those that were removed lately.
-- name: QueuesEnding :many
select name from queues
where state = 'REMOVING' and removing_at < now() - @settled::interval
    or state = 'REMOVED' and removed_at > now() - @late::interval
order by name;

-- name: QueueJobs :one
select count(*) from jobs where shelf_of(status, version) between 0 and 7 and queue = @queue;

-- name: QueueHasJobs :one
select exists (select from jobs where shelf_of(status, version) between 0 and 7 and queue = @queue);

-- Whether the last census found jobs in the queue that had not ended. A look through all waiting jobs may take seconds.
-- name: QueueWasFilled :one
select exists (
    select from job_counts cross join json_array_elements(counts) as counted
    where counted ->> 'Queue' = @queue::text and counted ->> 'Status' not in ('COMPLETED', 'FAILED', 'CANCELLED')
);

-- What would still make jobs in the queue: schedules, and batches that have not ended.
-- name: QueueNamed :one
select
    (select count(*) from schedules where job ->> 'queue' = @queue::text) as schedules,
    (select count(*) from batches
     where finished_at is null and @queue::text in (on_complete ->> 'queue', on_failure ->> 'queue')) as batches;

-- Those of the queues that are being removed, or were: their jobs must not run again.
-- name: QueuesClosed :many
select name from queues where name = any (@names::text[]) and state <> 'ACTIVE';
