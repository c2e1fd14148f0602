-- name: ClaimsFold :exec
-- The attempts that a heartbeat lists replace the claims that were answered before it.
with folded as (
    delete from claims
    where worker_id = @worker_id::text and number between 1 and @answered::bigint
)
insert into claims (worker_id, number, job_ids, attempts)
values (@worker_id::text, 0, @job_ids::uuid[], @attempts::int[])
on conflict (worker_id, number) do update set job_ids = excluded.job_ids, attempts = excluded.attempts;
