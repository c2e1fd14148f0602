-- +goose Up

-- The block of an id, named by its first id, and the id's place in it, from 0 to 63.
CREATE FUNCTION block_of(id uuid) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN encode(set_byte(uuid_send(id), 15, get_byte(uuid_send(id), 15) & 129), 'hex')::uuid;
CREATE FUNCTION place_of(id uuid) RETURNS int LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (get_byte(uuid_send(id), 15) >> 1) & 63;

-- Members of a cohort whose first attempts completed on one worker, in one transaction. The values of the arrays are in
-- the order of the places. A row is never changed: when something happens to one of its jobs, all of them get rows of
-- ended.
CREATE TABLE ended_cohorts (
    block_id    uuid          NOT NULL,
    places      bigint        NOT NULL, -- in the block, as bits
    version     bigint        NOT NULL,
    queue       text          NOT NULL,
    job_type    text          NOT NULL,
    spec        json          NOT NULL,
    owner_id    text,
    fairness_key text COLLATE "C" NOT NULL,
    worker_id   text,
    created_at  timestamptz   NOT NULL,
    ended_at    timestamptz   NOT NULL,
    history     text          NOT NULL, -- without the completion
    trace_ids   uuid[]        NOT NULL,
    payloads    json[]        NOT NULL,
    outputs     json[],                 -- null: none has one
    started_at  timestamptz[] NOT NULL, -- of the attempts
    finished_at timestamptz[] NOT NULL,
    PRIMARY KEY (block_id, places),
    CONSTRAINT ended_cohorts_possible CHECK (
        cardinality(trace_ids) = bit_count(places::bit(64))
        AND cardinality(payloads) = cardinality(trace_ids) AND cardinality(started_at) = cardinality(trace_ids)
        AND cardinality(finished_at) = cardinality(trace_ids) AND coalesce(cardinality(outputs) = cardinality(trace_ids), true))
);

-- To compress payloads and outputs takes longer than to write them as they are.
ALTER TABLE ended_cohorts ALTER payloads SET STORAGE EXTERNAL, ALTER outputs SET STORAGE EXTERNAL;
ALTER TABLE cohorts ALTER payloads SET STORAGE EXTERNAL;

-- The jobs in ended_cohorts, with the columns that a row of ended would have: the history has the very text that was
-- published. The ids are computed: a job is found fast by block_of(job_id).
CREATE VIEW ended_members AS
SELECT e.block_id, e.places, place, 1::bigint << place AS mask,
       encode(set_byte(uuid_send(e.block_id), 15, get_byte(uuid_send(e.block_id), 15) | (place << 1)), 'hex')::uuid AS job_id,
       e.trace_ids[m.n] AS trace_id, e.job_type, e.queue, e.payloads[m.n] AS payload, e.spec, e.version, 1 AS attempt,
       e.history || ',{"at":' || to_json(e.ended_at)::text
           || ',"from":"QUEUED","to":"COMPLETED","attempt":1,"by":"outcome","outcome":"completed"'
           || coalesce(',"workerId":' || to_json(e.worker_id)::text, '')
           || coalesce(',"startedAt":' || replace(to_json(e.started_at[m.n] AT TIME ZONE 'UTC')::text || 'Z', '"Z', 'Z"'), '')
           || coalesce(',"finishedAt":' || replace(to_json(e.finished_at[m.n] AT TIME ZONE 'UTC')::text || 'Z', '"Z', 'Z"'), '')
           || '}' AS history,
       e.outputs[m.n] AS output, e.started_at[m.n] AS started_at, e.ended_at AS finished_at, e.created_at,
       e.ended_at AS updated_at, e.owner_id, e.fairness_key
FROM ended_cohorts e
CROSS JOIN generate_series(0, 63) AS place
CROSS JOIN LATERAL (SELECT 1 + bit_count((e.places & ~(-1::bigint << place))::bit(64))::int AS n) AS m
WHERE e.places & (1::bigint << place) <> 0;

-- What was dispatched together, with its cohort. A search of its own finds the cohort: a plain join would read all
-- cohorts when statistics show an empty table.
CREATE VIEW cohorts_out AS
SELECT d.first_id, d.places, d.out, d.partitions, d.dispatched_at, d.lease_expires_at,
       CASE WHEN d.by_function IS NULL THEN 1 ELSE 2 END AS version, c.rank, c.queue, c.job_type, c.spec, c.owner_id,
       c.fairness_key, c.created_at, c.job_ids, c.trace_ids, c.payloads,
       CASE WHEN d.by_function IS NULL THEN c.history
            ELSE c.history || ',{"at":' || to_json(d.dispatched_at)::text || ',"from":"PENDING","to":"QUEUED","by":"'
                 || d.by_function || '","attempt":1}' END AS history
FROM dispatched d
CROSS JOIN LATERAL (SELECT * FROM cohorts WHERE cohorts.first_id = d.first_id OFFSET 0) c;

-- The jobs without rows of their own, with the columns that a row of jobs would have. place is that in the arrays, from
-- 1, and in_block that in the block of ids, from 0. What members have in common is made once.
DROP VIEW attempts_out;
DROP VIEW members;
CREATE VIEW members AS
SELECT c.first_id, c.rank, c.queue, c.job_type, c.spec, c.owner_id, c.fairness_key, c.created_at, m.job_id, m.trace_id,
       m.payload, m.place::int AS place, 1::bigint << (m.place - 1)::int AS mask,
       place_of(m.job_id) AS in_block, 'PENDING' AS status, 1::bigint AS version, 0 AS attempt,
       c.history, c.updated_at, NULL::bigint AS places, NULL::smallint AS partition, NULL::timestamptz AS lease_expires_at,
       NULL::json AS output, NULL::timestamptz AS started_at, NULL::timestamptz AS finished_at
FROM cohorts c
CROSS JOIN LATERAL ROWS FROM (unnest(c.job_ids), unnest(c.trace_ids), unnest(c.payloads)) WITH ORDINALITY
    AS m (job_id, trace_id, payload, place)
WHERE c.waiting & (1::bigint << (m.place - 1)::int) <> 0
UNION ALL
SELECT d.first_id, d.rank, d.queue, d.job_type, d.spec, d.owner_id, d.fairness_key, d.created_at, m.job_id, m.trace_id,
       m.payload, m.place::int, 1::bigint << (m.place - 1)::int, place_of(m.job_id), 'QUEUED', d.version, 1,
       d.history, d.dispatched_at, d.places,
       d.partitions[1 + bit_count((d.places & ~(-1::bigint << (m.place - 1)::int))::bit(64))], d.lease_expires_at,
       NULL, NULL, NULL
FROM cohorts_out d
CROSS JOIN LATERAL ROWS FROM (unnest(d.job_ids), unnest(d.trace_ids), unnest(d.payloads)) WITH ORDINALITY
    AS m (job_id, trace_id, payload, place)
WHERE d.out & (1::bigint << (m.place - 1)::int) <> 0
UNION ALL
SELECT e.block_id, e.finished_at, e.queue, e.job_type, e.spec, e.owner_id, e.fairness_key, e.created_at, e.job_id, e.trace_id,
       e.payload, NULL, e.mask, e.place, 'COMPLETED', e.version, e.attempt, e.history, e.updated_at, e.places, NULL, NULL,
       e.output, e.started_at, e.finished_at
FROM ended_members e;

CREATE VIEW attempts_out AS
SELECT queue, job_type, owner_id, fairness_key, partition, worker_id, lease_expires_at, cancel_requested_at
FROM jobs WHERE status IN ('QUEUED', 'RUNNING')
UNION ALL
SELECT queue, job_type, owner_id, fairness_key, partition, NULL, lease_expires_at, NULL
FROM members WHERE status = 'QUEUED';

-- How a job ended, or its state; no row: it is unknown, or a member that has not ended.
CREATE FUNCTION status_of(id uuid) RETURNS SETOF text LANGUAGE sql STABLE AS $$
    SELECT j.status FROM all_jobs j WHERE j.job_id = $1
    UNION ALL
    SELECT 'COMPLETED' FROM ended_cohorts e WHERE e.block_id = block_of($1) AND e.places & (1::bigint << place_of($1)) <> 0
$$;

CREATE OR REPLACE FUNCTION parents_of(inputs json) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_agg(json_build_object(
        'name', parents.name, 'jobId', parents."jobId", 'attempt', parents.attempt,
        'output', CASE WHEN parents.bytes <= 524288 THEN parents.output END, 'outputBytes', parents.bytes))
    FROM (
        SELECT input.name, input."jobId", parent.attempt, parent.output,
               sum(octet_length(parent.output::text)) OVER () AS bytes
        FROM json_to_recordset($1) AS input (name text, "jobId" uuid)
        LEFT JOIN LATERAL (
            SELECT a.attempt, a.output FROM all_jobs a
            WHERE a.job_id = input."jobId" AND a.status = 'COMPLETED' AND a.deleted_at IS NULL
            UNION ALL
            SELECT e.attempt, e.output FROM ended_members e
            WHERE e.block_id = block_of(input."jobId") AND e.place = place_of(input."jobId")
        ) AS parent ON true
    ) AS parents
$$;

-- +goose Down
INSERT INTO ended (job_id, trace_id, job_type, queue, payload, spec, version, attempt, retry_count, command_seq, history,
                   moves, output, started_at, finished_at, created_at, updated_at, owner_id, fairness_key)
SELECT job_id, trace_id, job_type, queue, payload, spec, version, attempt, 0, 0, history,
       version, output, started_at, finished_at, created_at, updated_at, owner_id, fairness_key
FROM ended_members;
CREATE OR REPLACE FUNCTION parents_of(inputs json) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_agg(json_build_object(
        'name', parents.name, 'jobId', parents."jobId", 'attempt', parents.attempt,
        'output', CASE WHEN parents.bytes <= 524288 THEN parents.output END, 'outputBytes', parents.bytes))
    FROM (
        SELECT input.name, input."jobId", parent.attempt, parent.output,
               sum(octet_length(parent.output::text)) OVER () AS bytes
        FROM json_to_recordset(inputs) AS input (name text, "jobId" uuid)
        LEFT JOIN all_jobs AS parent
            ON parent.job_id = input."jobId" AND parent.status = 'COMPLETED' AND parent.deleted_at IS NULL
    ) AS parents
$$;
DROP FUNCTION status_of;
DROP VIEW attempts_out;
DROP VIEW members;
DROP VIEW cohorts_out;
DROP VIEW ended_members;
DROP TABLE ended_cohorts;
ALTER TABLE cohorts ALTER payloads SET STORAGE EXTENDED;
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
CREATE VIEW attempts_out AS
SELECT queue, job_type, owner_id, fairness_key, partition, worker_id, lease_expires_at, cancel_requested_at
FROM jobs WHERE status IN ('QUEUED', 'RUNNING')
UNION ALL
SELECT queue, job_type, owner_id, fairness_key, partition, NULL, lease_expires_at, NULL
FROM members WHERE status = 'QUEUED';
DROP FUNCTION place_of, block_of;
