-- +goose Up

-- Jobs that were accepted together, wait, and differ only in their ids, traces and payloads: up to 64 of them are one row
-- instead of a row of jobs each. A member leaves for jobs when it is dispatched, or when a command names it, and never
-- comes back. Rows are written only under the dispatch lock.
CREATE TABLE cohorts (
    first_id     uuid PRIMARY KEY,          -- of the first of job_ids; all members have ids of the same block
    rank         timestamptz NOT NULL,
    waiting      bigint      NOT NULL,      -- a bit for each place in the arrays: the job still waits here
    queue        text        NOT NULL,
    job_type     text        NOT NULL,
    spec         json        NOT NULL,
    owner_id     text,
    fairness_key text COLLATE "C" NOT NULL, -- all cohorts of a queue have the same
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL DEFAULT now(),
    history      text        NOT NULL,
    job_ids      uuid[]      NOT NULL,
    trace_ids    uuid[]      NOT NULL,
    payloads     json[]      NOT NULL,
    CONSTRAINT cohorts_possible CHECK (waiting <> 0 AND cardinality(job_ids) BETWEEN 2 AND 64)
) WITH (fillfactor = 70);
CREATE INDEX cohorts_best ON cohorts (queue, rank, first_id);

-- The jobs that wait in cohorts.
CREATE VIEW members AS
SELECT c.first_id, c.rank, c.waiting, c.queue, c.job_type, c.spec, c.owner_id, c.fairness_key, c.created_at, c.updated_at,
       c.history, m.job_id, m.trace_id, m.payload, 1::bigint << (m.place - 1)::int AS mask
FROM cohorts c
CROSS JOIN LATERAL ROWS FROM (unnest(c.job_ids), unnest(c.trace_ids), unnest(c.payloads)) WITH ORDINALITY
    AS m (job_id, trace_id, payload, place)
WHERE c.waiting & (1::bigint << (m.place - 1)::int) <> 0;

-- The best cohorts of a queue in which together at least that many jobs wait, or all.
CREATE FUNCTION best_cohorts(of_queue text, at_least timestamptz, most integer) RETURNS SETOF uuid LANGUAGE sql STABLE AS $$
    WITH RECURSIVE best AS (
        (SELECT c.first_id, c.rank, bit_count(c.waiting::bit(64)) AS jobs FROM cohorts c
         WHERE c.queue = $1 AND c.rank >= $2
         ORDER BY c.rank, c.first_id
         LIMIT 1)
        UNION ALL
        SELECT next.first_id, next.rank, best.jobs + next.jobs
        FROM best
        CROSS JOIN LATERAL (
            SELECT c.first_id, c.rank, bit_count(c.waiting::bit(64)) AS jobs FROM cohorts c
            WHERE c.queue = $1 AND (c.rank, c.first_id) > (best.rank, best.first_id)
            ORDER BY c.rank, c.first_id
            LIMIT 1
        ) next
        WHERE best.jobs < $3
    )
    SELECT best.first_id FROM best
$$;

-- +goose Down
DROP FUNCTION best_cohorts;
DROP VIEW members;
DROP TABLE cohorts;
