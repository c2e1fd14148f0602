-- name: AwaitReplicas :exec
-- A commit that wrote nothing waits for no replica. With this in it, it waits for all that was committed before: also for
-- what is visible although its own wait was broken off, since that comes with the client's patience. It locks nothing and
-- leaves a few bytes in the WAL.
select pg_logical_emit_message(true, 'jobweaver', ''::text);
