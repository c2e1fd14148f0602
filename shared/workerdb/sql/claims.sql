-- name: ClaimInsert :exec
insert into claims (worker_id, number, job_ids, attempts, trace_ids)
values (@worker_id::text, @number::bigint, @job_ids::uuid[], @attempts::int[], @trace_ids::uuid[]);

-- name: ClaimsFold :exec
-- The attempts that a heartbeat lists replace the claims that were answered before it.
with folded as (
    delete from claims
    where worker_id = @worker_id::text and number between 1 and @answered::bigint
)
insert into claims (worker_id, number, job_ids, attempts, trace_ids)
values (@worker_id::text, 0, @job_ids::uuid[], @attempts::int[], @trace_ids::uuid[])
on conflict (worker_id, number) do update set
    job_ids = excluded.job_ids, attempts = excluded.attempts, trace_ids = excluded.trace_ids;
