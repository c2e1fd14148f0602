-- name: ClaimsFold :exec
-- The attempts that a heartbeat lists replace the claims that were answered before it.
with folded as (
    delete from claims
    where worker_id = @worker_id::text and number between 1 and @answered::bigint
)
insert into claims (worker_id, number, job_ids, attempts)
values (@worker_id::text, 0, @job_ids::uuid[], @attempts::int[])
on conflict (worker_id, number) do update set job_ids = excluded.job_ids, attempts = excluded.attempts;

-- name: ClaimsFile :exec
-- A worker that meets an open attempt of a silent worker lists it here, where Reap looks. It is missing if the silent
-- worker is of a release without claims and died while it was being replaced.
insert into claims (worker_id, number, job_ids, attempts)
select a.worker_id, -1 - (random() * 1e15)::bigint, array_agg(a.job_id), array_agg(a.attempt)
from rows from (unnest(@job_ids::uuid[]), unnest(@attempts::int[])) as input (job_id, attempt)
join execution_attempts a on a.job_id = any (array[input.job_id]) and a.attempt = input.attempt
join workers w on w.worker_id = a.worker_id and w.seen_at not between now() - @silence::interval and now() + @silence::interval
where case when a.outcome is null then true else false end
group by a.worker_id
on conflict (worker_id, number) do nothing;
