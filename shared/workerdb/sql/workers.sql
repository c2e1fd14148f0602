-- name: WorkerSee :one
-- Returns the time since this worker's last heartbeat by the database's clock, which decides whether it is silent: zero
-- the first time, negative if that clock was put back.
with before as (
    select seen_at from workers where worker_id = @worker_id::text
)
insert into workers (worker_id, queues, free)
values (@worker_id::text, @queues::text[], @free::int)
on conflict (worker_id) do update set
    queues = excluded.queues, free = excluded.free, seen_at = now()
returning coalesce((select extract(epoch from now() - seen_at) * 1e6 from before), 0)::bigint as unseen; -- microseconds

-- name: WorkersFree :many
-- The free slots of the other live workers, by queue.
select q.queue::text as queue, sum(w.free)::int as free
from workers w
cross join unnest(w.queues) as q (queue)
where w.worker_id <> @worker_id::text and w.free > 0 and w.seen_at between now() - @silence::interval and now() + @silence::interval
group by 1;

-- name: WorkerLeave :exec
-- The row stays, as that of a silent worker: a claim of this worker may still commit after it has left, and others then
-- reap it.
update workers set free = 0, seen_at = now() - interval '1 minute' where worker_id = @worker_id::text;

-- name: WorkersDeleteOld :exec
-- Deletes workers that were last seen long ago and have no claims.
delete from workers w
where w.seen_at < now() - @age::interval
  and not exists (select from claims c where c.worker_id = w.worker_id);

-- name: WorkersRestore :exec
-- Inserts rows of silent workers for claims that have no worker. Such a worker was frozen, woke after its row was
-- deleted, claimed and died. Without the row its claims would never be reaped.
insert into workers (worker_id, queues, free, seen_at)
select distinct c.worker_id, '{}'::text[], 0, now() - interval '1 minute'
from claims c
where not exists (select from workers w where w.worker_id = c.worker_id)
on conflict (worker_id) do nothing;

-- name: CleanupLock :one
-- Held by the session of the one worker that cleans up.
select pg_try_advisory_lock(@key::bigint) as got;

-- name: CleanupUnlock :exec
-- The end of the session releases the lock too, some time after its client has gone.
select pg_advisory_unlock(@key::bigint);
