-- One process at a time sums up tallies.
-- name: TallyLock :one
select pg_try_advisory_xact_lock(7306371);

-- name: TallyEnterAccepted :exec
insert into tally_entries (at, owner_id, queue, job_type, what, n, kept)
select unnest(@ats::timestamptz[]), unnest(@owner_ids::text[]), unnest(@queues::text[]), unnest(@job_types::text[]), 'ACCEPTED', unnest(@ns::int[]), 0;

-- name: TallyTakeEntries :many
delete from tally_entries
where id = any (array(select id from tally_entries order by id limit @max_entries::int))
returning at, owner_id, queue, job_type, what, n, kept, times, error_codes;

-- name: TallyTakeOld :many
delete from tallies
where ctid = any (array(
    select t.ctid from tallies as t
    where t.grain = @grain and t.at < @before::timestamptz order by t.at limit @max_tallies::int
))
returning tallies.*;

-- Rows are compared, because only the primary key has their columns in this order: for equal columns the plan may take
-- the index of the age, which finds all keys of a minute for each key.
-- name: TallyFind :many
with input as (
    select
        unnest(@everyones::boolean[]) as everyone,
        unnest(@owner_ids::text[])    as owner_id,
        unnest(@grains::text[])       as grain,
        unnest(@ats::timestamptz[])   as at,
        unnest(@queues::text[])       as queue,
        unnest(@job_types::text[])    as job_type,
        unnest(@whats::text[])        as what
)
select found.* from input cross join lateral (
    select * from tallies
    where (tallies.everyone, tallies.owner_id, tallies.grain, tallies.at, tallies.queue, tallies.job_type, tallies.what)
        >= (input.everyone, input.owner_id, input.grain, input.at, input.queue, input.job_type, input.what)
        and (tallies.everyone, tallies.owner_id, tallies.grain, tallies.at, tallies.queue, tallies.job_type, tallies.what)
        <= (input.everyone, input.owner_id, input.grain, input.at, input.queue, input.job_type, input.what)
    offset 0
) as found;

-- name: TallyPut :exec
insert into tallies (everyone, owner_id, grain, at, queue, job_type, what, n, kept, waited, ran, took, error_codes)
select
    unnest(@everyones::boolean[]), unnest(@owner_ids::text[]),
    unnest(@grains::text[]), unnest(@ats::timestamptz[]), unnest(@queues::text[]), unnest(@job_types::text[]),
    unnest(@whats::text[]), unnest(@ns::bigint[]), unnest(@kepts::bigint[]),
    unnest(@waiteds::bytea[]), unnest(@rans::bytea[]), unnest(@tooks::bytea[]),
    unnest(@error_codes::json[])
on conflict (everyone, owner_id, grain, at, queue, job_type, what) do update set
    n = excluded.n, kept = excluded.kept, waited = excluded.waited, ran = excluded.ran, took = excluded.took,
    error_codes = excluded.error_codes;

-- Types and queues come and go, so an empty tally is not kept for ever.
-- name: TallyForget :exec
delete from tallies where grain = 'ever' and kept = 0;

-- All tallies of all owners together or of one owner, in one snapshot; histograms and error codes only of the minutes
-- from @since.
-- name: TalliesOf :many
select
    grain, at, queue, job_type, what, n, kept,
    (case when recent then waited else '' end)::bytea as waited,
    (case when recent then ran else '' end)::bytea as ran,
    (case when recent then took else '' end)::bytea as took,
    (case when recent then error_codes else '{}' end)::json as error_codes,
    '{}'::int[] as times, '{}'::text[] as codes
from tallies cross join lateral (select at >= @since::timestamptz and grain = 'minute' as recent) as age
where everyone = @everyone::boolean and owner_id = @owner_id::text
union all
select 'entry', at, queue, job_type, what, n, kept, '', '', '', '{}', times, error_codes from tally_entries
where @everyone or owner_id = @owner_id;

-- The histograms and error codes of the last month that TalliesOf leaves out.
-- name: TalliesBefore :many
select grain, at, queue, job_type, what, waited, ran, took, error_codes from tallies
where everyone = @everyone::boolean and owner_id = @owner_id::text
    and (grain = 'minute' and at < @before::timestamptz or grain in ('hour', 'day'))
    and what <> 'ACCEPTED' and at >= @since::timestamptz;

-- Counts the jobs of one page of the walk over the shelves of jobs that have not ended.
-- name: JobsCountPage :many
with page as (
    select shelf_of(status, version) as shelf, job_id, owner_id, queue, job_type from jobs
    where shelf_of(status, version) >= @shelf::smallint and shelf_of(status, version) <= 7
        and (shelf_of(status, version), job_id) > (@shelf, @after_id::uuid)
    order by shelf_of(status, version), job_id
    limit @max_jobs::int
)
select
    shelf::smallint as shelf, owner_id, queue, job_type, count(*) as n,
    min(job_id::text collate "C")::uuid as first_id, max(job_id::text collate "C")::uuid as last_id
from page group by shelf, owner_id, queue, job_type;

-- Counts one page of the jobs on a shelf, by queue and fairness key.
-- name: KeysCountPage :many
with page as (
    select job_id, queue, owner_id, coalesce(fairness_key, owner_id) as key from jobs
    where shelf_of(status, version) = @shelf::smallint and job_id > @after_id::uuid
    order by job_id
    limit @max_jobs::int
)
select queue, owner_id, key, count(*) as n, max(job_id::text collate "C")::uuid as last_id
from page group by queue, owner_id, key;

-- Only the newest count is kept, and only the newest replaces the counts of each owner.
-- name: JobCountsPut :execrows
insert into job_counts (as_of, took, counts, ended) values (@as_of, @took, @counts, @ended)
on conflict (id) do update set
    as_of = excluded.as_of, took = excluded.took, counts = excluded.counts,
    ended = excluded.ended
where job_counts.as_of < excluded.as_of;

-- name: OwnerJobCountsPut :exec
with input as (
    select unnest(@owner_ids::text[]) as owner_id, unnest(@counts::text[]) as counts, unnest(@ended::text[]) as ended
), gone as (
    delete from owner_job_counts where not exists (select from input where input.owner_id = owner_job_counts.owner_id)
)
insert into owner_job_counts (owner_id, counts, ended)
select owner_id, counts, ended from input
on conflict (owner_id) do update set counts = excluded.counts, ended = excluded.ended
where owner_job_counts.counts <> excluded.counts or owner_job_counts.ended <> excluded.ended;

-- name: JobCounts :one
select as_of, took, counts from job_counts;

-- The counts of all owners together or of one owner.
-- name: JobCountsOf :one
with known as (
    select counts::text as counts, ended::text as ended from job_counts where @everyone::boolean
    union all
    select counts, ended from owner_job_counts where not @everyone and owner_id = @owner_id::text
)
select
    as_of, took,
    coalesce((select known.counts from known), '[]')::text as counts,
    coalesce((select known.ended from known), '[]')::text as ended
from job_counts;

-- The owners that have jobs, a key, or a control, by name. Keys are read one owner at a time: an owner has up to 10,000.
-- name: OwnersKnown :many
with recursive keyed as (
    select (select owner_id from api_keys where owner_id > '' order by owner_id limit 1) as owner_id
    union all
    select (select further.owner_id from api_keys as further where further.owner_id > keyed.owner_id order by further.owner_id limit 1)
    from keyed where keyed.owner_id is not null
)
select owner_id::text as owner_id from (
    select owner_id from owner_job_counts where owner_id > ''
    union
    (select owner_id from keyed where owner_id is not null limit @most::int)
    union
    select name from controls where kind = 'owner'
) as known
order by owner_id limit @most;

-- How many ended jobs are kept, over all owners together and for each owner.
-- name: TalliesKept :many
select everyone, owner_id, queue, job_type, what, sum(kept)::bigint as kept
from (
    select everyone, owner_id, queue, job_type, what, kept from tallies
    union all
    select sum.everyone, case when sum.everyone then '' else entry.owner_id end, entry.queue, entry.job_type, entry.what, entry.kept
    from tally_entries as entry cross join (values (true), (false)) as sum (everyone)
) as counted
where kept <> 0
group by everyone, owner_id, queue, job_type, what
having sum(kept) <> 0;
