-- name: AlertInsert :many
insert into alerts (
    alert_id, owner_id, name, job_type, queue, error_code, failures, percent, window_minutes, quiet_minutes, destination, paused
) values (
    @alert_id, @owner_id, @name, @job_type, @queue, @error_code, @failures, @percent, @window_minutes, @quiet_minutes,
    @destination, @paused
)
on conflict (name, owner_id) do nothing
returning *;

-- A paused alert does not fire.
-- name: AlertReplace :one
update alerts set
    job_type = @job_type, queue = @queue, error_code = @error_code, failures = @failures, percent = @percent,
    window_minutes = @window_minutes, quiet_minutes = @quiet_minutes, destination = @destination, paused = @paused,
    updated_at = clock_timestamp(), firing_since = case when not @paused then firing_since end,
    announced = announced and not @paused
where alert_id = @alert_id
returning *;

-- name: AlertPause :one
update alerts set
    paused = @paused, updated_at = clock_timestamp(), firing_since = case when not @paused then firing_since end,
    announced = announced and not @paused
where alert_id = @alert_id
returning *;

-- name: AlertDelete :exec
delete from alerts where alert_id = @alert_id;

-- name: AlertsCount :one
select count(*) from (select from alerts where owner_id = @owner_id limit @most::int) as few;

-- Several owners may use one name, and two rows are enough to show that. The alert of the installation comes first.
-- name: AlertsNamed :many
select * from alerts
where name = @name and (sqlc.narg('owner_id')::text is null or owner_id = sqlc.narg('owner_id'))
order by owner_id
limit 2;

-- name: AlertLock :one
select * from alerts where alert_id = @alert_id for update;

-- name: AlertsList :many
select * from alerts
where (name, owner_id) > (@after_name::text, @after_owner::text)
    and (sqlc.narg('owner_id')::text is null or owner_id = sqlc.narg('owner_id'))
order by name, owner_id
limit @max_alerts::int;

-- name: AlertsFiring :many
select * from alerts
where firing_since is not null and (name, owner_id) > (@after_name::text, @after_owner::text)
    and (sqlc.narg('owner_id')::text is null or owner_id = sqlc.narg('owner_id'))
order by name, owner_id
limit @max_alerts::int;

-- One page of the walk over all alerts.
-- name: AlertsPage :many
select * from alerts where alert_id > @after_id::uuid order by alert_id limit @max_alerts::int;

-- name: AlertSeal :exec
update alerts set destination = @destination where alert_id = @alert_id;

-- name: AlertMove :exec
update alerts set firing_since = sqlc.narg('firing_since'), announced = @announced, announced_at = sqlc.narg('announced_at')
where alert_id = @alert_id;

-- What ended by the minute, for each of some owners or for all together. Jobs that send notices do not count: an alert
-- of a destination that cannot be reached would otherwise fire about itself, and never end.
-- name: AlertTallies :many
with input as (
    select unnest(@everyones::boolean[]) as everyone, unnest(@owner_ids::text[]) as owner_id, unnest(@sinces::timestamptz[]) as since
)
select input.owner_id::text as owner_id, found.at, found.queue, found.job_type, found.what, found.n, found.error_codes
from input cross join lateral (
    select tallies.at, tallies.queue, tallies.job_type, tallies.what, tallies.n, tallies.error_codes from tallies
    where tallies.everyone = input.everyone and tallies.owner_id = input.owner_id and tallies.grain = 'minute'
        and tallies.at >= input.since and tallies.what in ('COMPLETED', 'FAILED') and tallies.n > 0
        and tallies.job_type <> 'ALERT'
    offset 0
) as found;

-- name: AlertNoticeInsert :exec
insert into alert_notices (alert_id, notice_id, state, failed, ended, job_id)
values (@alert_id, @notice_id, @state, @failed, @ended, @job_id);

-- Keeps the last notices of an alert.
-- name: AlertNoticesForget :exec
delete from alert_notices
where alert_notices.alert_id = @alert_id and alert_notices.notice_id <= (
    select old.notice_id from alert_notices as old
    where old.alert_id = @alert_id order by old.notice_id desc offset @kept::int limit 1
);

-- name: AlertNoticesList :many
select notice_id, at, state, failed, ended, job_id from alert_notices
where alert_id = @alert_id and notice_id < @before_id::uuid
order by notice_id desc
limit @max_notices::int;
