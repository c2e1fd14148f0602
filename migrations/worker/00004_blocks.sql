-- +goose Up

-- The block of an id, named by its first id, the id's place in it, from 0 to 63, and the last id of a block.
CREATE FUNCTION block_of(id uuid) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN encode(set_byte(uuid_send(id), 15, get_byte(uuid_send(id), 15) & 129), 'hex')::uuid;
CREATE FUNCTION place_of(id uuid) RETURNS int LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (get_byte(uuid_send(id), 15) >> 1) & 63;

CREATE FUNCTION last_of(block_id uuid) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN encode(set_byte(uuid_send(block_id), 15, get_byte(uuid_send(block_id), 15) | 126), 'hex')::uuid;

-- The attempts with one number of the jobs of a block, with a bit for each place. This row alone decides whether an
-- attempt is taken. An attempt that was moved is as its row of execution_attempts has it.
CREATE TABLE blocks (
    block_id      uuid          NOT NULL,
    attempt       int           NOT NULL,
    taken         bigint        NOT NULL,
    workers       text[]        NOT NULL DEFAULT '{}', -- that have claimed some
    shares        bigint[]      NOT NULL DEFAULT '{}', -- of each worker
    moved         bigint        NOT NULL DEFAULT 0, -- to execution_attempts
    completed     bigint        NOT NULL DEFAULT 0,
    cancel_wanted bigint        NOT NULL DEFAULT 0,
    places        smallint[]    NOT NULL DEFAULT '{}', -- of the completed, in the order of the arrays that follow
    started_at    timestamptz[] NOT NULL DEFAULT '{}',
    finished_at   timestamptz[] NOT NULL DEFAULT '{}',
    outputs       json[]        NOT NULL DEFAULT '{}',
    PRIMARY KEY (block_id, attempt),
    CONSTRAINT blocks_possible CHECK (
        attempt > 0 AND (moved | completed | cancel_wanted) & ~taken = 0 AND moved & completed = 0
        AND cardinality(workers) = cardinality(shares) AND cardinality(places) = bit_count(completed::bit(64))
        AND cardinality(started_at) = cardinality(places) AND cardinality(finished_at) = cardinality(places)
        AND cardinality(outputs) = cardinality(places))
) WITH (fillfactor = 40);
ALTER TABLE blocks ALTER outputs SET STORAGE EXTERNAL;

-- The index of a worker in workers, or the next free one.
CREATE FUNCTION index_of(workers text[], worker text) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(array_position(workers, worker), cardinality(workers) + 1);
-- What a worker has claimed of a block.
CREATE FUNCTION share_of(workers text[], shares bigint[], worker text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(shares[array_position(workers, worker)], 0);

INSERT INTO blocks (block_id, attempt, taken, moved)
SELECT block_of(job_id), attempt, bit_or(1::bigint << place_of(job_id)), bit_or(1::bigint << place_of(job_id))
FROM execution_attempts
GROUP BY 1, 2;

-- All attempts. Those of a job are found fast by block_of(job_id) and attempt in blocks, and by the key of
-- execution_attempts; the ids of this view are computed.
CREATE VIEW attempts AS
SELECT job_id, attempt, trace_id, worker_id, timeout_ms, started_at, finished_at, outcome, cancel_wanted, output,
       error_code, error_message, retryable, retry_after_ms, callback_timeout_ms
FROM execution_attempts
UNION ALL
SELECT encode(set_byte(uuid_send(b.block_id), 15, get_byte(uuid_send(b.block_id), 15) | (place << 1)), 'hex')::uuid,
       b.attempt, NULL,
       b.workers[(SELECT i FROM generate_subscripts(b.shares, 1) AS i WHERE b.shares[i] & (1::bigint << place) <> 0)],
       NULL, b.started_at[done.n], b.finished_at[done.n], CASE WHEN done.n IS NOT NULL THEN 'completed' END,
       b.cancel_wanted & (1::bigint << place) <> 0, b.outputs[done.n], NULL, NULL, false, 0, NULL
FROM blocks b
CROSS JOIN generate_series(0, 63) AS place
CROSS JOIN LATERAL (SELECT array_position(b.places, place::smallint) AS n) AS done
WHERE b.taken & ~b.moved & (1::bigint << place) <> 0;
