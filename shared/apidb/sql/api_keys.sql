-- The keys with these ids, for authentication.
-- name: KeysByID :many
select * from api_keys where key_id = any(@key_ids::text[]);

-- name: KeyOf :one
select * from api_keys where key_id = @key_id and (@everyone::bool or owner_id = @owner_id::text);

-- name: KeyInsert :one
insert into api_keys (key_id, owner_id, name, roles, work_types, work_queues, secret_hash, created_by, expires_at)
values (@key_id, @owner_id, @name, @roles, @work_types, @work_queues, @secret_hash, @created_by, sqlc.narg('expires_at'))
returning *;

-- An existing key stays as it is, even a revoked one.
-- name: KeyEnsure :execrows
insert into api_keys (key_id, owner_id, name, roles, secret_hash, created_by)
values (@key_id, '', @name, '{admin}', @secret_hash, @created_by)
on conflict (key_id) do nothing;

-- name: KeysLive :one
select count(*) from (
    select from api_keys
    where owner_id = @owner_id and revoked_at is null and (expires_at is null or expires_at > now())
    limit @most::int
) as live;

-- name: KeysCount :one
select count(*) from (select from api_keys where owner_id = @owner_id limit @most::int) as few;

-- No function may delete keys itself, so a function of the database does it.
-- name: KeysForget :one
select api_keys_forget(@owner_id::text)::bigint as forgotten;

-- The keys of one owner, in pages.
-- name: KeysOfOwner :many
select * from api_keys
where owner_id = @owner_id and key_id > @after::text
order by owner_id, key_id
limit @max_keys::int;

-- name: KeysAll :many
select * from api_keys
where @after::text = '' or (owner_id, key_id) > (select k.owner_id, k.key_id from api_keys k where k.key_id = @after)
order by owner_id, key_id
limit @max_keys::int;

-- name: KeyRevoke :one
update api_keys set revoked_at = coalesce(revoked_at, now())
where key_id = @key_id and (@everyone::bool or owner_id = @owner_id::text)
returning *;

-- Locks the key that a rotation replaces.
-- name: KeyLock :one
select sqlc.embed(api_keys), now()::timestamptz as at
from api_keys
where key_id = @key_id and (@everyone::bool or owner_id = @owner_id::text)
for update;

-- name: KeyRetire :exec
update api_keys set expires_at = least(expires_at, now() + @overlap::interval) where key_id = @key_id;

-- At most once a minute for each key: the caller writes no more often.
-- name: KeysUsed :exec
update api_keys set last_used_at = input.used_at
from (select unnest(@key_ids::text[]) as key_id, unnest(@used_ats::timestamptz[]) as used_at) as input
where api_keys.key_id = any (array[input.key_id])
    and (last_used_at is null or last_used_at <= input.used_at - interval '1 minute');
