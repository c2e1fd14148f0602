-- name: CheckpointSaveMany :many
-- Saves the checkpoints of this worker's open attempts, and returns those attempts. An attempt that has an outcome, or
-- that another worker holds, saves nothing. The locks on the attempts' rows make that safe: if an outcome is being
-- written, this statement waits for it and reads the row again; an outcome that arrives now waits for this statement.
-- The next attempt is dispatched only after the outcome is committed, so it reads what was saved here, and no save
-- follows.
--
-- A pull worker's request can be delayed in the network and arrive after a later one. Its number is lower, so it
-- changes nothing; its attempt is returned all the same, since a later checkpoint has been saved.
with open as (
    select a.job_id, a.attempt, input.number, input.data
    from rows from (unnest(@job_ids::uuid[]), unnest(@attempts::int[]), unnest(@numbers::bigint[]), unnest(@datas::json[]))
        as input (job_id, attempt, number, data)
    join execution_attempts a on a.job_id = any (array[input.job_id]) and a.attempt = input.attempt
    where case when a.worker_id = @worker_id::text and a.outcome is null then true else false end
    order by input.job_id, input.attempt
    for update of a
), saved as (
    insert into checkpoints as c (job_id, attempt, number, data)
    select job_id, attempt, number, data from open
    on conflict (job_id) do update set
        attempt = excluded.attempt, number = excluded.number, data = excluded.data, saved_at = excluded.saved_at
    where (c.attempt, c.number) <= (excluded.attempt, excluded.number)
)
select job_id, attempt from open;

-- name: CheckpointGetMany :many
select job_id, data from checkpoints where job_id = any(@job_ids::uuid[]);

-- name: CheckpointDeleteMany :exec
delete from checkpoints where job_id = any(@job_ids::uuid[]);

-- name: CheckpointDeleteOld :execrows
-- Deletes checkpoints that were saved long ago. Job ids are UUIDv7, so only old jobs are visited.
delete from checkpoints
where job_id = any (array(
    select job_id
    from checkpoints
    where job_id < @before_id::uuid and saved_at < now() - @age::interval
    order by job_id
    limit @max_checkpoints::int
));
