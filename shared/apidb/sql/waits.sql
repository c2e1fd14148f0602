-- Locks the waits of a job, which the caller has locked.
-- name: WaitsLock :many
select name, status, attempt, group_name, until_at, done_at, look_at, event_type, event_number, run
from waits where job_id = @job_id
order by name
for update;

-- name: WaitsOfJob :many
select waits.name, waits.status, waits.attempt, waits.created_at, waits.until_at, waits.done_at, waits.event_type, waits.match,
    waits.event_number, waits.run, events.event
from waits left join events on events.event_number = any (array[waits.event_number])
where waits.job_id = @job_id
order by waits.created_at, waits.name;

-- Registrations of waits for a type, and its events, exclude each other: whichever comes second sees the first.
-- name: WaitsLockTypes :exec
select pg_advisory_xact_lock(lock) from (select unnest(@locks::bigint[]) as lock order by 1) as ordered;

-- name: WaitsLockTypesShared :exec
select pg_advisory_xact_lock_shared(lock) from (select unnest(@locks::bigint[]) as lock order by 1) as ordered;

-- Stores waits, and what has changed of stored ones.
-- name: WaitsKeep :exec
with input as (
    select
        unnest(@names::text[])                                 as name,
        unnest(@statuses::text[])                              as status,
        nullif(unnest(@group_names::text[]), '')               as group_name,
        nullif(unnest(@until_ats::timestamptz[]), '0001-01-01Z') as until_at,
        nullif(unnest(@event_types::text[]), '')               as event_type,
        nullif(unnest(@matches::text[]), '')                   as match,
        unnest(@keys::text[])::bigint[]                        as keys,
        unnest(@first_keys::bigint[])                          as first_key,
        nullif(unnest(@event_numbers::uuid[]), '00000000-0000-0000-0000-000000000000') as event_number,
        unnest(@runs::int[])                                   as run
), marked as (
    update jobs set waits = true where jobs.job_id = @job_id and jobs.waits is null
)
insert into waits (
    job_id, name, owner_id, status, attempt, group_name, until_at, done_at, look_at, event_type, match, keys, first_key, event_number, run
)
select
    @job_id, name, @owner_id::text, status, @attempt::int, group_name, until_at,
    case when status <> 'OPEN' then now() end, case when status = 'OPEN' then until_at end, event_type, match,
    case when event_type is not null then keys end, case when event_type is not null then first_key end, event_number, run
from input
order by name
on conflict (job_id, name) do update set
    status = excluded.status, attempt = excluded.attempt, group_name = excluded.group_name, until_at = excluded.until_at,
    done_at = case when excluded.status = 'OPEN' then null else coalesce(waits.done_at, excluded.done_at) end,
    look_at = excluded.look_at, event_type = excluded.event_type, match = excluded.match, keys = excluded.keys,
    first_key = excluded.first_key, event_number = excluded.event_number, run = excluded.run,
    child = case when waits.run = excluded.run then waits.child end,
    child_end = case when waits.run = excluded.run then waits.child_end end;

-- The oldest event of a type that matches, and that no wait of the job has got. Without keys every event matches.
-- name: EventKept :one
select event_number, event from (
    select events.event_number, events.event from events
    where cardinality(@keys::bigint[]) > 0 and events.keys @> @keys::bigint[]
        and events.owner_id = @owner_id::text and events.event_type = @event_type::text
        and not events.event_number = any (@taken::uuid[])
    offset 0
) as matching
order by event_number
limit 1;

-- name: EventOfType :one
select event_number, event from events
where owner_id = @owner_id::text and event_type = @event_type::text and not event_number = any (@taken::uuid[])
order by event_number
limit 1;

-- name: EventKeep :execrows
insert into events (event_number, owner_id, source, event_id, event_type, event, keys)
values (@event_number, @owner_id, @source, @event_id, @event_type, @event, @keys)
on conflict (owner_id, source, event_id) do nothing;

-- name: EventsNumbered :many
select event_number, event from events where event_number = any (@event_numbers::uuid[]);

-- Gives an event to all that wait for it, to the oldest wait of each job. A job gets an event once.
-- name: WaitsReceive :many
with open as (
    select distinct on (job_id) job_id, name from waits
    where owner_id = @owner_id::text and event_type = @event_type::text and first_key = any (@keys::bigint[])
        and status = 'OPEN' and keys <@ @keys::bigint[]
    order by job_id, created_at, name
)
update waits set status = 'DONE', done_at = now(), look_at = now(), event_number = @event_number::uuid
from open
where waits.job_id = any (array[open.job_id]) and waits.name = open.name and case when waits.status = 'OPEN' then true else false end
returning waits.job_id;

-- The jobs with waits that are due for a look.
-- name: WaitsToLookAt :many
select distinct job_id from (
    select job_id from waits where look_at <= now() order by look_at limit @max_waits::int
) as due;

-- name: WaitsNextLook :one
select coalesce((select extract(epoch from look_at - now()) from waits where look_at is not null order by look_at limit 1), 1e9)::float8 as seconds;

-- Stores what follows from a look at waits of a job.
-- name: WaitsLooked :exec
with input as (
    select unnest(@names::text[]) as name, unnest(@statuses::text[]) as status,
        nullif(unnest(@agains_ms::bigint[]), 0) as again_ms -- null: never
)
update waits set
    status  = input.status,
    done_at = case when input.status = 'OPEN' then null else coalesce(waits.done_at, now()) end,
    look_at = case when input.status = 'OPEN' then waits.until_at else now() + interval '1 ms' * input.again_ms end
from input
where waits.job_id = any (array[@job_id::uuid]) and waits.name = input.name;

-- The children of a job's waits, by the events that made them; of those that are deleted, how they ended.
-- name: WaitsChildren :many
with input as (
    select unnest(@ordinals::int[]) as ordinal, unnest(@names::text[]) as name, unnest(@runs::int[]) as run,
        unnest(@sources::text[]) as source, unnest(@event_ids::text[]) as event_id
)
select input.ordinal::int as ordinal,
    (coalesce(stored.child, case when waits.run = input.run then waits.child end))::json as child
from input left join lateral (
    select json_build_object('jobId', jobs.job_id, 'jobType', jobs.job_type, 'status', jobs.status,
        'cancelling', jobs.cancel_requested_at is not null) as child
    from jobs
    where jobs.event_owner = @owner_id::text and jobs.event_source = input.source and jobs.event_id = input.event_id
    offset 0
) as stored on true
left join waits on waits.job_id = any (array[@parent_id::uuid]) and waits.name = input.name
where stored.child is not null or waits.run = input.run and waits.child is not null;

-- How the children of a job's waits ended.
-- name: WaitsChildEnds :many
select name, (child ->> 'jobId')::uuid as job_id, child_end as snapshot from waits
where job_id = any (array[@parent_id::uuid]) and name = any (@names::text[]) and child_end is not null;

-- name: EventsExpire :one
with seen as (
    select event_number from events
    where event_number > @after_id::uuid and event_number < @before_id::uuid
    order by event_number
    limit @max_rows::int
), gone as (
    delete from events using seen
    where events.event_number = any (array[seen.event_number])
        and not exists (select from waits where waits.event_number = events.event_number offset 0)
    returning events.event_number
)
select coalesce((select event_number from seen order by event_number desc limit 1), @after_id::uuid)::uuid as last_id,
    (select count(*) from seen)::bigint as seen, (select count(*) from gone)::bigint as gone;
