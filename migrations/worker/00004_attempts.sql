-- +goose Up

-- Who moves an attempt that another worker has claimed finds its trace here.
ALTER TABLE claims ADD trace_ids uuid[] NOT NULL DEFAULT '{}';
ALTER TABLE claims ALTER trace_ids SET STORAGE EXTERNAL;
ALTER TABLE claims ALTER trace_ids DROP DEFAULT;

ALTER TABLE execution_attempts DROP queue;
ALTER TABLE execution_attempts ALTER timeout_ms DROP NOT NULL; -- null: it had an outcome when it got its row

-- All attempts.
CREATE VIEW attempts AS
SELECT job_id, attempt, trace_id, worker_id, timeout_ms, claimed_at, started_at, finished_at, outcome, cancel_wanted, output,
       error_code, error_message, retryable, retry_after_ms, callback_timeout_ms
FROM execution_attempts
UNION ALL
SELECT encode(set_byte(uuid_send(b.block_id), 15, get_byte(uuid_send(b.block_id), 15) | (place << 1)), 'hex')::uuid, b.attempt,
       NULL, b.workers[(SELECT i FROM generate_subscripts(b.shares, 1) AS i WHERE b.shares[i] & (1::bigint << place) <> 0)], NULL, b.claimed_at, b.started_at[done.n], b.finished_at[done.n],
       CASE WHEN done.n IS NOT NULL THEN 'completed' END, b.cancel_wanted & (1::bigint << place) <> 0, b.outputs[done.n],
       NULL, NULL, false, 0, NULL
FROM blocks b
CROSS JOIN generate_series(0, 63) AS place
CROSS JOIN LATERAL (SELECT array_position(b.places, place::smallint) AS n) AS done
WHERE b.taken & ~b.moved & (1::bigint << place) <> 0;
