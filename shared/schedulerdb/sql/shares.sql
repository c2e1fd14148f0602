-- name: KeysBest :many
-- The best jobs of the next fairness keys of some lanes, of each key one: from the key behind one key on and round to
-- that key. It is a loose scan with one step of the index jobs_by_key for each key. A closed key does not count. It
-- locks no row: JobsSendOut locks the chosen jobs.
with recursive round as (
    select unnest(@lanes::text[]) as lane, @from_key::text as key, false as is_second, 0 as n, null::uuid as job_id,
           null as job_type, null as owner_id, null::timestamptz as rank
    union all
    select round.lane, next.fairness_key collate "default", next.is_second, round.n + (next.fairness_key <> all (@closed::text[]))::int,
           next.job_id, next.job_type, next.owner_id, next.rank
    from round
    cross join lateral (
        (select false as is_second, j.fairness_key, j.job_id, j.job_type, j.owner_id, j.rank from jobs j
         where j.queue = @queue_name::text and coalesce(j.lane, '') = round.lane and j.status = 'PENDING'
           and j.blocked_by is null and not round.is_second and j.fairness_key > round.key collate "C"
         order by j.fairness_key, j.rank, j.job_id limit 1)
        union all
        (select true, j.fairness_key, j.job_id, j.job_type, j.owner_id, j.rank from jobs j
         where j.queue = @queue_name and coalesce(j.lane, '') = round.lane and j.status = 'PENDING'
           and j.blocked_by is null and not round.is_second and j.fairness_key <= @from_key
         order by j.fairness_key, j.rank, j.job_id limit 1)
        union all
        (select true, j.fairness_key, j.job_id, j.job_type, j.owner_id, j.rank from jobs j
         where j.queue = @queue_name and coalesce(j.lane, '') = round.lane and j.status = 'PENDING'
           and j.blocked_by is null and round.is_second and j.fairness_key > round.key collate "C"
           and j.fairness_key <= @from_key
         order by j.fairness_key, j.rank, j.job_id limit 1)
        limit 1
    ) next
    where round.n < @max_keys::int
)
select job_id::uuid as job_id, job_type::text as job_type, coalesce(owner_id, '')::text as owner_id,
       rank::timestamptz as rank, lane::text as lane, key::text as key
from round
where job_id is not null;

-- name: JobsAfter :many
-- Locks the best jobs of fairness keys in lanes, each after a place in the order of their ranks.
select best.job_id, best.job_type, best.owner_id, best.rank, wanted.lane::text as lane, wanted.key::text as key
from rows from (unnest(@lanes::text[]), unnest(@keys::text[]), unnest(@after_ranks::timestamptz[]), unnest(@after_ids::uuid[]),
                unnest(@mosts::int[])) as wanted (lane, key, after_rank, after_id, most)
cross join lateral (
    select j.job_id, j.job_type, coalesce(j.owner_id, '')::text as owner_id, j.rank from jobs j
    where j.queue = @queue_name::text and coalesce(j.lane, '') = wanted.lane and j.fairness_key = wanted.key
      and j.status = 'PENDING' and j.blocked_by is null and (j.rank, j.job_id) > (wanted.after_rank, wanted.after_id)
    order by j.rank, j.job_id
    limit wanted.most
    for update skip locked
) best;

-- name: KeysPending :many
-- The queues and lanes in which a job waits, each with its first and its last fairness key: a loose scan.
with recursive waiting as (
    (select first.queue, coalesce(first.lane, '') as lane from jobs first
     where first.status = 'PENDING' and first.blocked_by is null
     order by first.queue, coalesce(first.lane, ''), first.fairness_key limit 1)
    union all
    select later.queue, later.lane
    from waiting
    cross join lateral (
        select j.queue, coalesce(j.lane, '') as lane from jobs j
        where j.status = 'PENDING' and j.blocked_by is null
          and (j.queue, coalesce(j.lane, '')) > (waiting.queue, waiting.lane)
        order by j.queue, coalesce(j.lane, ''), j.fairness_key
        limit 1
    ) later
)
select waiting.queue::text as queue, ends.first_key::text as first_key, ends.last_key::text as last_key
from waiting
cross join lateral (
    select (select j.fairness_key from jobs j
            where j.queue = waiting.queue and coalesce(j.lane, '') = waiting.lane and j.status = 'PENDING'
              and j.blocked_by is null
            order by j.fairness_key limit 1) as first_key,
           (select j.fairness_key from jobs j
            where j.queue = waiting.queue and coalesce(j.lane, '') = waiting.lane and j.status = 'PENDING'
              and j.blocked_by is null
            order by j.fairness_key desc limit 1) as last_key
) ends;
