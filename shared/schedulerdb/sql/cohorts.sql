-- name: CohortsInsert :exec
insert into cohorts (first_id, rank, waiting, out, queue, job_type, spec, owner_id, fairness_key, created_at, history,
                     job_ids, trace_ids, payloads)
values (@first_id, @rank, @waiting, @out, @queue, @job_type, @spec::json, nullif(@owner_id::text, ''), @fairness_key,
        @created_at, @history, @job_ids::uuid[], @trace_ids::uuid[], @payloads::json[]);

-- name: DispatchedInsert :exec
-- Notes that all jobs of a new cohort began as QUEUED.
insert into dispatched (first_id, places, out, partitions, dispatched_at, lease_expires_at)
values (@first_id, @places, @places, @partitions::smallint[], now(), @lease_expires_at);

-- name: CohortsNear :one
-- Whether any cohort has, or had, members with ids of these blocks. It is much cheaper than the search for the members.
select exists (
    select from rows from (unnest(@from_ids::uuid[]), unnest(@to_ids::uuid[])) as block (from_id, to_id)
    join lateral (
        (select from cohorts where cohorts.first_id between block.from_id and block.to_id limit 1)
        union all
        (select from ended_cohorts where ended_cohorts.block_id between block.from_id and block.to_id limit 1)
    ) c on true
);

-- name: MembersNamed :many
-- Those of some jobs that are in cohorts. A bit of wanted stands for each place in a block of ids: with a list of ids the
-- server would compare each member with each id.
select m.job_id::uuid as job_id, m.trace_id::uuid as trace_id, m.queue, m.rank, m.fairness_key, m.status::text as status,
       m.version::bigint as version, m.attempt::int as attempt, m.history::text as history, m.updated_at, m.output,
       m.started_at, m.finished_at
from rows from (unnest(@from_ids::uuid[]), unnest(@to_ids::uuid[]), unnest(@wanted::bigint[])) as block (from_id, to_id, wanted)
cross join lateral (
    select * from members
    where members.first_id between block.from_id and block.to_id and block.wanted & (1::bigint << members.in_block) <> 0
      and block_of(members.job_id) = block.from_id
    offset 0 -- behind the conditions: an output is read only of a job that is wanted
) m;

-- name: MembersBest :many
-- The best jobs that wait in the cohorts of a queue.
select job_id::uuid from members
where first_id = any (array(select best_cohorts(@queue_name::text, @floor::timestamptz, @most::int))) and status = 'PENDING';

-- name: CohortBest :many
select rank, fairness_key from cohorts where queue = $1 and waiting <> 0 order by rank, first_id limit 1;

-- name: MembersSome :many
-- The jobs of some cohorts.
select job_id::uuid from members
where first_id = any (array(select cohorts.first_id from cohorts order by cohorts.first_id limit @most::int))
  and status in ('PENDING', 'QUEUED');

-- name: MembersUnlisted :many
-- The jobs of cohorts that no worker has listed for a lease. A lease that ends later than any new one can was granted
-- before the clock was put back.
select job_id::uuid from members
where first_id = any (array(
        select d.first_id from dispatched d
        where d.lease_expires_at not between now() and now() + 2 * @lease::interval
        limit @most::int))
  and status = 'QUEUED' and lease_expires_at not between now() and now() + 2 * @lease
limit @most;

-- name: MembersLeave :many
-- Gives members of cohorts rows of jobs, in which they wait or are out as before. MembersRemove has to follow.
with leaving as (
    select m.*
    from rows from (unnest(@from_ids::uuid[]), unnest(@to_ids::uuid[]), unnest(@wanted::bigint[])) as block (from_id, to_id, wanted)
    cross join lateral (
        select * from members
        where members.first_id between block.from_id and block.to_id and members.status in ('PENDING', 'QUEUED')
        offset 0
    ) m
    where block.wanted & (1::bigint << m.in_block) <> 0
), joined as (
    insert into jobs (job_id, trace_id, job_type, queue, payload, spec, status, version, attempt, rank, lease_expires_at,
                      partition, history, moves, created_at, updated_at, owner_id, fairness_key)
    select job_id, trace_id, job_type, queue, payload, spec, status, version, attempt, rank, lease_expires_at,
           partition, history, version, created_at, updated_at, owner_id, fairness_key
    from leaving
)
select first_id, coalesce(places, 0)::bigint as places, mask::bigint as mask from leaving;

-- name: MembersComplete :many
-- JobsComplete for first attempts of jobs in cohorts: a row for those of a block that were dispatched together and that
-- one worker ran. Their values begin at the place behind before, and are in the order of their ids. MembersRemove has to
-- follow, under the lock of the ledger.
with completed as (
    select d.first_id, d.places as dispatched, block.block_id, block.worker_id, d.version + 1 as version, d.queue, d.job_type,
           d.spec, d.owner_id, d.fairness_key, d.created_at, d.history, jobs.*
    from rows from (unnest(@block_ids::uuid[]), unnest(@last_ids::uuid[]), unnest(@worker_ids::text[]),
                    unnest(@wanted::bigint[]), unnest(@befores::int[]))
        as block (block_id, last_id, worker_id, wanted, before)
    cross join lateral (
        select * from cohorts_out
        where cohorts_out.first_id between block.block_id and block.last_id and block_of(cohorts_out.first_id) = block.block_id
        offset 0
    ) d
    cross join lateral (
        select bit_or(m.mask) as masks, bit_or(1::bigint << m.in_block) as places, array_agg(m.trace_id) as trace_ids,
               array_agg(m.payload) as payloads, array_agg((@outputs::json[])[value.n]) as outputs,
               array_agg(nullif((@started_ats::timestamptz[])[value.n], '0001-01-01Z')) as started_at,
               array_agg(nullif((@finished_ats::timestamptz[])[value.n], '0001-01-01Z')) as finished_at,
               array_agg(d.partitions[1 + bit_count((d.places & ~(-1::bigint << m.nth))::bit(64))]) as partitions
        from (
            select trace_id, payload, (nth - 1)::int as nth, 1::bigint << (nth - 1)::int as mask, place_of(job_id) as in_block
            from rows from (unnest(d.job_ids), unnest(d.trace_ids), unnest(d.payloads)) with ordinality
                as member (job_id, trace_id, payload, nth)
            offset 0
        ) m
        cross join lateral (select block.before + 1 + bit_count((block.wanted & ~(-1::bigint << m.in_block))::bit(64)) as n) value
        where d.out & m.mask <> 0 and block.wanted & (1::bigint << m.in_block) <> 0
    ) jobs
    where jobs.masks is not null
), moved as (
    insert into ended_cohorts (block_id, places, version, queue, job_type, spec, owner_id, fairness_key, worker_id,
                               created_at, ended_at, history, trace_ids, payloads, outputs, started_at, finished_at)
    select block_id, places, version, queue, job_type, spec, owner_id, fairness_key, nullif(worker_id, ''),
           created_at, now(), history, trace_ids, payloads, case when @outputs is not null then outputs end, started_at,
           finished_at
    from completed
    order by block_id, places -- two transactions that complete the same jobs wait for each other in one order
)
select first_id, dispatched::bigint as dispatched, masks::bigint as masks, block_id::uuid as block_id,
       places::bigint as places, trace_ids::uuid[] as trace_ids, partitions::smallint[] as partitions,
       version::bigint as version, history::text as history, now()::timestamptz as updated_at,
       (select to_json(now())::text) as at, queue, owner_id, job_type, fairness_key
from completed;

-- name: EndedMembersLeave :exec
-- Gives jobs that completed in cohorts rows of ended, and all that share a row with them.
with gone as (
    delete from ended_cohorts e
    using rows from (unnest(@block_ids::uuid[]), unnest(@wanted::bigint[])) as block (block_id, wanted)
    where e.block_id = any (array[block.block_id]) and case when e.places & block.wanted <> 0 then true else false end
    returning e.block_id, e.places
)
insert into ended (job_id, trace_id, job_type, queue, payload, spec, version, attempt, retry_count, command_seq, history,
                   moves, output, started_at, finished_at, created_at, updated_at, owner_id, fairness_key)
select m.job_id, m.trace_id, m.job_type, m.queue, m.payload, m.spec, m.version, m.attempt, 0, 0, m.history,
       m.version, m.output, m.started_at, m.finished_at, m.created_at, m.updated_at, m.owner_id, m.fairness_key
from gone
cross join lateral (
    select * from ended_members where ended_members.block_id = gone.block_id and ended_members.places = gone.places offset 0
) m;

-- name: MembersRemove :one
-- Removes jobs from cohorts, and those that are out from what was dispatched together. It returns from how many cohorts:
-- one that does not have all of the jobs any more is left as it is.
with whole as (
    select unnest(@first_ids::uuid[]) as first_id, unnest(@waiting::bigint[]) as waiting, unnest(@out::bigint[]) as out
), part as (
    select unnest(@part_ids::uuid[]) as first_id, unnest(@places::bigint[]) as places, unnest(@part_out::bigint[]) as out
), empty as (
    delete from cohorts using whole
    where cohorts.first_id = any (array[whole.first_id]) and cohorts.waiting = whole.waiting and cohorts.out = whole.out
    returning 1
), fewer as (
    update cohorts set waiting = cohorts.waiting & ~whole.waiting, out = cohorts.out & ~whole.out
    from whole
    where cohorts.first_id = any (array[whole.first_id]) and (cohorts.waiting <> whole.waiting or cohorts.out <> whole.out)
      and cohorts.waiting & whole.waiting = whole.waiting and cohorts.out & whole.out = whole.out
    returning 1
), empty_part as (
    delete from dispatched using part
    where dispatched.first_id = any (array[part.first_id]) and dispatched.places = part.places and dispatched.out = part.out
), fewer_part as (
    update dispatched set out = dispatched.out & ~part.out
    from part
    where dispatched.first_id = any (array[part.first_id]) and dispatched.places = part.places
      and dispatched.out <> part.out and dispatched.out & part.out = part.out
)
select ((select count(*) from empty) + (select count(*) from fewer))::int as cohorts;
