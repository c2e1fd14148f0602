-- +goose Up

-- The members of a cohort that one transaction dispatched.
CREATE TABLE dispatched (
    first_id         uuid        NOT NULL, -- of the cohort
    places           bigint      NOT NULL, -- those that were dispatched, as bits
    out              bigint      NOT NULL, -- those of them that are still out and in the cohort
    partitions       smallint[]  NOT NULL, -- one for each of places
    by_function      text,                 -- null: the jobs began as QUEUED
    dispatched_at    timestamptz NOT NULL,
    lease_expires_at timestamptz NOT NULL,
    PRIMARY KEY (first_id, places),
    CONSTRAINT dispatched_possible CHECK (out <> 0 AND out & ~places = 0)
) WITH (fillfactor = 70);

-- The jobs in cohorts, with the columns that a row of jobs would have. place is that in the arrays, from 1, and in_block
-- that in the block of ids, from 0. What members have in common is made once. Each part finds its cohort by a search of
-- its own: a plain join would read all cohorts when statistics show an empty table.
DROP VIEW members;
CREATE VIEW members AS
SELECT c.first_id, c.rank, c.queue, c.job_type, c.spec, c.owner_id, c.fairness_key, c.created_at, m.job_id, m.trace_id,
       m.payload, m.place::int AS place, 1::bigint << (m.place - 1)::int AS mask,
       (get_byte(uuid_send(m.job_id), 15) >> 1) & 63 AS in_block, 'PENDING' AS status, 1 AS version, 0 AS attempt,
       c.history, c.updated_at, NULL::bigint AS places, NULL::smallint AS partition, NULL::timestamptz AS lease_expires_at
FROM cohorts c
CROSS JOIN LATERAL ROWS FROM (unnest(c.job_ids), unnest(c.trace_ids), unnest(c.payloads)) WITH ORDINALITY
    AS m (job_id, trace_id, payload, place)
WHERE c.waiting & (1::bigint << (m.place - 1)::int) <> 0
UNION ALL
SELECT d.first_id, c.rank, c.queue, c.job_type, c.spec, c.owner_id, c.fairness_key, c.created_at, m.job_id, m.trace_id,
       m.payload, m.place::int, 1::bigint << (m.place - 1)::int,
       (get_byte(uuid_send(m.job_id), 15) >> 1) & 63, 'QUEUED', CASE WHEN d.by_function IS NULL THEN 1 ELSE 2 END, 1,
       c.history, d.dispatched_at, d.places,
       d.partitions[1 + bit_count((d.places & ~(-1::bigint << (m.place - 1)::int))::bit(64))], d.lease_expires_at
FROM dispatched d
CROSS JOIN LATERAL (
    SELECT c.rank, c.queue, c.job_type, c.spec, c.owner_id, c.fairness_key, c.created_at, c.job_ids, c.trace_ids, c.payloads,
           CASE WHEN d.by_function IS NULL THEN c.history
                ELSE c.history || ',{"at":' || to_json(d.dispatched_at)::text || ',"from":"PENDING","to":"QUEUED","by":"'
                     || d.by_function || '","attempt":1}' END AS history
    FROM cohorts c WHERE c.first_id = d.first_id
    OFFSET 0
) c
CROSS JOIN LATERAL ROWS FROM (unnest(c.job_ids), unnest(c.trace_ids), unnest(c.payloads)) WITH ORDINALITY
    AS m (job_id, trace_id, payload, place)
WHERE d.out & (1::bigint << (m.place - 1)::int) <> 0;

-- The attempts that are out, wherever they are.
CREATE VIEW attempts_out AS
SELECT queue, job_type, owner_id, fairness_key, partition, worker_id, lease_expires_at, cancel_requested_at
FROM jobs WHERE status IN ('QUEUED', 'RUNNING')
UNION ALL
SELECT queue, job_type, owner_id, fairness_key, partition, NULL, lease_expires_at, NULL
FROM members WHERE status = 'QUEUED';

CREATE OR REPLACE FUNCTION best_cohorts(of_queue text, at_least timestamptz, most integer) RETURNS SETOF uuid LANGUAGE sql STABLE AS $$
    WITH RECURSIVE best AS (
        (SELECT c.first_id, c.rank, bit_count(c.waiting::bit(64)) AS jobs FROM cohorts c
         WHERE c.queue = $1 AND c.waiting <> 0 AND c.rank >= $2
         ORDER BY c.rank, c.first_id
         LIMIT 1)
        UNION ALL
        SELECT next.first_id, next.rank, best.jobs + next.jobs
        FROM best
        CROSS JOIN LATERAL (
            SELECT c.first_id, c.rank, bit_count(c.waiting::bit(64)) AS jobs FROM cohorts c
            WHERE c.queue = $1 AND c.waiting <> 0 AND (c.rank, c.first_id) > (best.rank, best.first_id)
            ORDER BY c.rank, c.first_id
            LIMIT 1
        ) next
        WHERE best.jobs < $3
    )
    SELECT best.first_id FROM best
$$;

-- +goose Down
INSERT INTO jobs (job_id, trace_id, job_type, queue, payload, spec, status, version, attempt, rank, lease_expires_at,
                  partition, history, moves, created_at, updated_at, owner_id, fairness_key)
SELECT job_id, trace_id, job_type, queue, payload, spec, status, version, attempt, rank, lease_expires_at,
       partition, history, version, created_at, updated_at, owner_id, fairness_key
FROM members WHERE status = 'QUEUED';
DELETE FROM cohorts WHERE waiting = 0;
DROP VIEW attempts_out;
DROP VIEW members;
DROP TABLE dispatched;
CREATE VIEW members AS
SELECT c.first_id, c.rank, c.waiting, c.queue, c.job_type, c.spec, c.owner_id, c.fairness_key, c.created_at, c.updated_at,
       c.history, m.job_id, m.trace_id, m.payload, 1::bigint << (m.place - 1)::int AS mask
FROM cohorts c
CROSS JOIN LATERAL ROWS FROM (unnest(c.job_ids), unnest(c.trace_ids), unnest(c.payloads)) WITH ORDINALITY
    AS m (job_id, trace_id, payload, place)
WHERE c.waiting & (1::bigint << (m.place - 1)::int) <> 0;
CREATE OR REPLACE FUNCTION best_cohorts(of_queue text, at_least timestamptz, most integer) RETURNS SETOF uuid LANGUAGE sql STABLE AS $$
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
