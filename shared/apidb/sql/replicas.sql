-- name: AwaitReplicas :exec
-- A commit that wrote nothing waits for no replica. With this record it waits for all earlier commits, even for those
-- that are visible although their own wait was cut short because a client gave up. It locks nothing and leaves a few
-- bytes in the WAL.
select pg_logical_emit_message(true, 'jobweaver', ''::text);
