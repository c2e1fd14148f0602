-- name: KeysBest :many
-- The best jobs of the next fairness keys of some lanes, from one key on and round to the key before it. It is a loose
-- scan with one step of the index jobs_by_key for each key, which also finds the key's best job. For a closed key it
-- returns only that job, and the key does not count. each is the most jobs that it returns for a key. It locks no row:
-- JobsSendOut locks the chosen jobs.
with recursive wanted as (
    select lane, floor from rows from (unnest(@lanes::text[]), unnest(@floors::timestamptz[])) as w (lane, floor)
), turns as (
    select wanted.lane, wanted.floor, next.fairness_key as key, next.job_id, next.job_type, next.owner_id, next.rank,
           (next.fairness_key <> all (@closed::text[]))::int as n
    from wanted
    cross join lateral (
        select fairness_key, job_id, job_type, owner_id, rank from (
            (select j.fairness_key, j.job_id, j.job_type, j.owner_id, j.rank from jobs j
             where j.queue = @queue_name::text and coalesce(j.lane, '') = wanted.lane and j.status = 'PENDING' and j.blocked_by is null
               and j.fairness_key >= @from_key::text
             order by j.fairness_key, j.rank, j.job_id limit 1)
            union all
            (select j.fairness_key, j.job_id, j.job_type, j.owner_id, j.rank from jobs j
             where j.queue = @queue_name::text and coalesce(j.lane, '') = wanted.lane and j.status = 'PENDING' and j.blocked_by is null
               and j.fairness_key < @from_key::text
             order by j.fairness_key, j.rank, j.job_id limit 1)
        ) round
        limit 1
    ) next
    union all
    select turns.lane, turns.floor, next.fairness_key, next.job_id, next.job_type, next.owner_id, next.rank,
           turns.n + (next.fairness_key <> all (@closed::text[]))::int
    from turns
    cross join lateral (
        select fairness_key, job_id, job_type, owner_id, rank from (
            (select j.fairness_key, j.job_id, j.job_type, j.owner_id, j.rank from jobs j
             where j.queue = @queue_name::text and coalesce(j.lane, '') = turns.lane and j.status = 'PENDING' and j.blocked_by is null
               and turns.key >= @from_key::text and j.fairness_key > turns.key
             order by j.fairness_key, j.rank, j.job_id limit 1)
            union all
            (select j.fairness_key, j.job_id, j.job_type, j.owner_id, j.rank from jobs j
             where j.queue = @queue_name::text and coalesce(j.lane, '') = turns.lane and j.status = 'PENDING' and j.blocked_by is null
               and turns.key >= @from_key::text and j.fairness_key < @from_key::text
             order by j.fairness_key, j.rank, j.job_id limit 1)
            union all
            (select j.fairness_key, j.job_id, j.job_type, j.owner_id, j.rank from jobs j
             where j.queue = @queue_name::text and coalesce(j.lane, '') = turns.lane and j.status = 'PENDING' and j.blocked_by is null
               and turns.key < @from_key::text and j.fairness_key > turns.key and j.fairness_key < @from_key::text
             order by j.fairness_key, j.rank, j.job_id limit 1)
        ) round
        limit 1
    ) next
    where turns.n < @max_keys::int
), bound as (
    select greatest((@max_rows::int) / greatest(count(turns.key)::int, 1), 1)::int as each
    from turns
    where key <> all (@closed::text[])
), shown as (
    select turns.lane, turns.floor, turns.key, turns.job_id, turns.job_type, turns.owner_id, turns.rank, bound.each,
           case when turns.key <> all (@closed::text[]) then bound.each else 1 end as most
    from bound
    cross join turns
)
select shown.job_id::uuid as job_id, shown.job_type::text as job_type, coalesce(shown.owner_id, '')::text as owner_id,
       shown.rank::timestamptz as rank, shown.lane::text as lane, shown.key::text as key, shown.each
from shown
union all
select later.job_id, later.job_type, coalesce(later.owner_id, ''), later.rank, shown.lane, shown.key, shown.each
from shown
cross join lateral (
    select j.job_id, j.job_type, j.owner_id, j.rank from jobs j
    where j.queue = @queue_name::text and coalesce(j.lane, '') = shown.lane and j.status = 'PENDING' and j.blocked_by is null
      and j.fairness_key = shown.key and j.rank >= shown.floor and (j.rank, j.job_id) > (shown.rank, shown.job_id)
    order by j.rank, j.job_id
    limit shown.most - 1
) later;

-- name: KeysDispatch :many
-- Dispatches jobs of a queue in turns, each fairness key one job in each round, beginning after the key that had the
-- last turn. No job of the queue is in a lane, and no control holds back a key or gives it a weight. turns and wrapped
-- are loose scans with one step of the index jobs_by_key for each key, which also finds the key's best job. If there
-- are fewer keys than partitions, further jobs of each are read, as many of one key as of another: if a key has fewer
-- of them, the statement returns fewer rows than there are partitions although other jobs wait. A row is found again by
-- its ctid, without an index: within one snapshot it does not change.
with recursive turns as (
    (select j.fairness_key as key, j.rank, j.job_id, j.ctid as seen, 1 as place from jobs j
     where j.queue = @queue_name::text and coalesce(j.lane, '') = '' and j.status = 'PENDING'
       and j.blocked_by is null and j.fairness_key > @after_key::text
     order by j.fairness_key, j.rank, j.job_id limit 1)
    union all
    select next.key, next.rank, next.job_id, next.seen, turns.place + 1
    from turns
    cross join lateral (
        select j.fairness_key as key, j.rank, j.job_id, j.ctid as seen from jobs j
        where j.queue = @queue_name::text and coalesce(j.lane, '') = '' and j.status = 'PENDING'
          and j.blocked_by is null and j.fairness_key > turns.key
        order by j.fairness_key, j.rank, j.job_id limit 1
    ) next
    where turns.place < cardinality(@partitions::smallint[])
), wrapped as (
    (select j.fairness_key as key, j.rank, j.job_id, j.ctid as seen, (select count(*) from turns)::int + 1 as place
     from jobs j
     where (select count(*) from turns) < cardinality(@partitions::smallint[])
       and j.queue = @queue_name::text and coalesce(j.lane, '') = '' and j.status = 'PENDING'
       and j.blocked_by is null and j.fairness_key <= @after_key::text
     order by j.fairness_key, j.rank, j.job_id limit 1)
    union all
    select next.key, next.rank, next.job_id, next.seen, wrapped.place + 1
    from wrapped
    cross join lateral (
        select j.fairness_key as key, j.rank, j.job_id, j.ctid as seen from jobs j
        where j.queue = @queue_name::text and coalesce(j.lane, '') = '' and j.status = 'PENDING'
          and j.blocked_by is null and j.fairness_key > wrapped.key and j.fairness_key <= @after_key::text
        order by j.fairness_key, j.rank, j.job_id limit 1
    ) next
    where wrapped.place < cardinality(@partitions::smallint[])
), keys as (
    select * from turns union all select * from wrapped
), bound as (
    select (cardinality(@partitions::smallint[]) - 1) / greatest(count(*), 1)::int as more from keys
), shown as (
    select 0 as round, keys.place, keys.seen from keys
    union all
    select later.round, keys.place, later.seen
    from bound
    cross join keys
    cross join lateral (
        select j.ctid as seen, (row_number() over (order by j.rank, j.job_id))::int as round from jobs j
        where j.queue = @queue_name::text and coalesce(j.lane, '') = '' and j.status = 'PENDING'
          and j.blocked_by is null and j.fairness_key = keys.key and (j.rank, j.job_id) > (keys.rank, keys.job_id)
        order by j.rank, j.job_id
        limit bound.more
    ) later
    where bound.more > 0
), best as (
    select shown.seen, shown.round, shown.place from shown
    order by shown.round, shown.place
    limit cardinality(@partitions::smallint[])
), locked as (
    select best.seen, best.round, best.place
    from best
    join jobs j on j.ctid = best.seen
    where case when j.status = 'PENDING' and j.blocked_by is null then true else false end
    for update of j skip locked
), placed as (
    select locked.seen, row_number() over (order by locked.round, locked.place) as place from locked
)
update jobs
set status           = 'QUEUED',
    version          = jobs.version + 1,
    attempt          = jobs.attempt + 1,
    lease_expires_at = statement_timestamp() + @lease::interval,
    asked            = null,
    partition        = (@partitions::smallint[])[placed.place],
    worker_id        = null,
    updated_at       = statement_timestamp(),
    moves            = least(jobs.moves + 1, 100),
    history          = case when jobs.moves < 100 then jobs.history else last_moves(jobs.history, 99) end
                       || ',{"at":' || (select to_json(statement_timestamp())::text) || ',"from":"PENDING","to":"QUEUED","by":"'
                       || @by_function::text || '","attempt":' || jobs.attempt + 1 || '}'
from placed
where jobs.ctid = placed.seen
  and jobs.status = 'PENDING'
returning jobs.job_id, jobs.rank, jobs.partition, jobs.fairness_key as key, placed.place;

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
