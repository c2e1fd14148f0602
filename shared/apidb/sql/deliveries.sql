-- The ends of jobs that must be delivered. JobsApplyStatus makes the rows.

-- The first owners with pending deliveries, by name, from one on. The query jumps from owner to owner, so the cost of the
-- next one does not depend on how many deliveries are due to one of them. It reads nothing while no delivery is due at all.
-- name: DeliveryOwners :many
with recursive owners as (
    (
        select deliveries.owner_id from deliveries
        where status = 'PENDING' and deliveries.owner_id >= @from_owner::text
            and exists (select from deliveries as due where due.status = 'PENDING' and due.next_at <= now())
        order by deliveries.owner_id limit 1
    )
    union all
    select (
        select deliveries.owner_id from deliveries
        where status = 'PENDING' and deliveries.owner_id > owners.owner_id
        order by deliveries.owner_id limit 1
    ) from owners where owners.owner_id is not null
)
select owners.owner_id::text as owner_id from owners where owners.owner_id is not null limit @max_owners::int;

-- For each owner a page of the hosts by name that have pending deliveries, and for each host whether a delivery is due.
-- An owner without such a host has an empty host. The query jumps from host to host.
-- name: DeliveryTurns :many
with recursive hosts as (
    select page.owner_id, (
        select deliveries.host from deliveries
        where status = 'PENDING' and deliveries.owner_id = page.owner_id and deliveries.host > page.after_host
        order by deliveries.host limit 1
    ) as host, 1 as nth
    from (select unnest(@owners::text[]) as owner_id, unnest(@after_hosts::text[]) as after_host) as page
    union all
    select hosts.owner_id, (
        select deliveries.host from deliveries
        where status = 'PENDING' and deliveries.owner_id = hosts.owner_id and deliveries.host > hosts.host
        order by deliveries.host limit 1
    ), hosts.nth + 1
    from hosts where hosts.host is not null and hosts.nth < @max_hosts::int
)
select hosts.owner_id::text as owner_id, coalesce(hosts.host, '')::text as host, coalesce((
    -- Not "exists": the planner would rather read all due rows once than look up each host.
    select next_at from deliveries
    where status = 'PENDING' and deliveries.owner_id = hosts.owner_id and deliveries.host = hosts.host
    order by next_at limit 1
) <= now(), false)::boolean as due
from hosts where hosts.host is not null or hosts.nth = 1;

-- How long until the next delivery is due. A claimed delivery is due when its lease ends.
-- name: DeliveryNext :many
select extract(epoch from next_at - now())::float8 as seconds from deliveries where status = 'PENDING' order by next_at limit 1;

-- Claims due deliveries of some owners to some hosts, as many as there is room for at each place. They are due again
-- when the lease ends, unless the claimant settles them before.
-- name: DeliveriesClaim :many
with due as (
    select due_there.job_id, due_there.version
    from (
        select unnest(@owners::text[]) as owner_id, unnest(@hosts::text[]) as host, unnest(@rooms::int[]) as room
    ) as wanted cross join lateral (
        select job_id, version from deliveries
        where status = 'PENDING' and deliveries.owner_id = wanted.owner_id and deliveries.host = wanted.host
            and next_at <= now()
        order by next_at
        limit wanted.room
        for update skip locked
    ) as due_there
)
update deliveries set tries = tries + 1, last_try_at = now(), next_at = now() + @lease::interval
from due
where deliveries.job_id = any (array[due.job_id]) and deliveries.version = due.version
returning deliveries.job_id, deliveries.version, deliveries.owner_id, url, host, job, snapshot, tries, coalesce(last_try_at, now())::timestamptz as tried_at;

-- Stores the result of a try. It changes nothing after the claimant's lease, if another process has claimed the
-- delivery or a user has restarted it. The number of the try alone does not distinguish these, since a restarted
-- delivery counts from 1.
-- name: DeliverySettle :execrows
update deliveries set
    status      = @status::text,
    next_at     = case @status when 'PENDING' then now() + @wait::interval end,
    finished_at = case @status when 'PENDING' then null else now() end,
    last_answer = sqlc.narg('last_answer')::int,
    last_error  = @last_error::text
where job_id = @job_id and version = @version and tries = @tries and last_try_at = @tried_at::timestamptz
    and case when status = 'PENDING' then true else false end;

-- Gives back a delivery whose try was cut short; such a try does not count.
-- name: DeliveryRelease :exec
update deliveries set tries = tries - 1, next_at = now()
where job_id = @job_id and version = @version and tries = @tries and last_try_at = @tried_at::timestamptz
    and case when status = 'PENDING' then true else false end;

-- Restarts a delivery from its first try.
-- name: DeliveryRetry :many
with again as (
    update deliveries set status = 'PENDING', tries = 0, next_at = now(), finished_at = null
    where job_id = @job_id and version = @version and (sqlc.narg('owner')::text is null or owner_id = sqlc.narg('owner'))
    returning
        job_id, version, owner_id, job_status, url, status, tries, next_at, last_try_at, last_answer, last_error,
        created_at, finished_at
), woken as (
    select pg_notify(coalesce(nullif(current_schema(), 'public'), 'jobweaver') || '_deliveries', '') from again
)
select again.*, (select count(*) from woken)::bigint as woken from again;

-- name: DeliveriesOfJob :many
select
    job_id, version, owner_id, job_status, url, status, tries, next_at, last_try_at, last_answer, last_error,
    created_at, finished_at
from deliveries
where job_id = @job_id and (sqlc.narg('owner')::text is null or owner_id = sqlc.narg('owner'))
order by version desc
limit @max_deliveries::int;

-- name: DeliveriesList :many
select
    job_id, version, owner_id, job_status, url, status, tries, next_at, last_try_at, last_answer, last_error,
    created_at, finished_at
from deliveries
where (job_id, version) < (@before_id::uuid, @before_version::bigint)
    and (sqlc.narg('owner')::text is null or owner_id = sqlc.narg('owner'))
order by job_id desc, version desc
limit @max_deliveries::int;

-- name: DeliveriesListByStatus :many
select
    job_id, version, owner_id, job_status, url, status, tries, next_at, last_try_at, last_answer, last_error,
    created_at, finished_at
from deliveries
where status = @status::text and (job_id, version) < (@before_id::uuid, @before_version::bigint)
    and (sqlc.narg('owner')::text is null or owner_id = sqlc.narg('owner'))
order by job_id desc, version desc
limit @max_deliveries::int;

-- The same for one owner and some states, each read in the order of ids and no further than the limit.
-- name: DeliveriesListOwned :many
select
    owned.job_id, owned.version, owned.owner_id, owned.job_status, owned.url, owned.status, owned.tries, owned.next_at,
    owned.last_try_at, owned.last_answer, owned.last_error, owned.created_at, owned.finished_at
from unnest(@statuses::text[]) as wanted cross join lateral (
    select * from deliveries
    where deliveries.owner_id = @owner::text and deliveries.owner_id <> '' and deliveries.status = wanted
        and (deliveries.job_id, deliveries.version) < (@before_id::uuid, @before_version::bigint)
    order by deliveries.job_id desc, deliveries.version desc
    limit @max_deliveries::int
) as owned
order by owned.job_id desc, owned.version desc
limit @max_deliveries;

-- Deletes some of the deliveries that finished before an instant.
-- name: DeliveriesForget :execrows
with old as (
    select job_id, version from deliveries
    where finished_at < now() - @age::interval
    order by finished_at
    limit @max_deliveries::int
    for update skip locked
)
delete from deliveries using old
where deliveries.job_id = any (array[old.job_id]) and deliveries.version = old.version and deliveries.finished_at is not null;
