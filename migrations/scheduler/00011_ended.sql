-- +goose Up
-- Jobs that completed. They leave jobs, so that the table whose rows and indexes every transaction walks holds only what
-- can still change. A completed job is written without checks and without further indexes.
CREATE TABLE ended (
    job_id          uuid PRIMARY KEY,
    trace_id        uuid        NOT NULL,
    job_type        text        NOT NULL,
    queue           text        NOT NULL,
    payload         json        NOT NULL,
    priority        smallint    NOT NULL,
    max_retry_count smallint    NOT NULL,
    retry_policy    json,
    timeout_ms      integer     NOT NULL,
    version         bigint      NOT NULL,
    attempt         integer     NOT NULL,
    retry_count     smallint    NOT NULL,
    command_seq     integer     NOT NULL,
    last_command    json,
    history         text        NOT NULL,
    moves           smallint    NOT NULL,
    output          json,
    started_at      timestamptz,
    finished_at     timestamptz NOT NULL,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    owner_id        text,
    ordering_key    text,
    order_number    bigint,
    expires_at      timestamptz,
    deleted_at      timestamptz,
    fairness_key    text COLLATE "C" NOT NULL,
    build           text,
    inputs          json
);

-- Each job, wherever its row is. What a completed job cannot have is null.
CREATE VIEW all_jobs AS
SELECT job_id, trace_id, job_type, queue, payload, priority, max_retry_count, retry_policy, timeout_ms, status, version,
       attempt, retry_count, rank, due_at, callback_deadline_at, cancel_requested_at, command_seq, last_command, history,
       output, error_code, error_message, started_at, finished_at, created_at, updated_at, owner_id, lane, blocked_by,
       ordering_key, order_number, expires_at, deleted_at, fairness_key, build, inputs
FROM jobs
UNION ALL
SELECT job_id, trace_id, job_type, queue, payload, priority, max_retry_count, retry_policy, timeout_ms, 'COMPLETED', version,
       attempt, retry_count, finished_at, null, null, null, command_seq, last_command, history,
       output, null, null, started_at, finished_at, created_at, updated_at, owner_id, null, null,
       ordering_key, order_number, expires_at, deleted_at, fairness_key, build, inputs
FROM ended;

-- As before, but also of jobs that have left jobs. No release has called the function yet.
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

-- +goose Down
INSERT INTO jobs (job_id, trace_id, job_type, queue, payload, priority, max_retry_count, retry_policy, timeout_ms, status,
                  version, attempt, retry_count, rank, command_seq, last_command, history, moves, output, started_at,
                  finished_at, created_at, updated_at, owner_id, ordering_key, order_number, expires_at, deleted_at,
                  fairness_key, build, inputs)
SELECT job_id, trace_id, job_type, queue, payload, priority, max_retry_count, retry_policy, timeout_ms, 'COMPLETED',
       version, attempt, retry_count, finished_at, command_seq, last_command, history, moves, output, started_at,
       finished_at, created_at, updated_at, owner_id, ordering_key, order_number, expires_at, deleted_at,
       fairness_key, build, inputs
FROM ended;
CREATE OR REPLACE FUNCTION parents_of(inputs json) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_agg(json_build_object(
        'name', parents.name, 'jobId', parents."jobId", 'attempt', parents.attempt,
        'output', CASE WHEN parents.bytes <= 524288 THEN parents.output END, 'outputBytes', parents.bytes))
    FROM (
        SELECT input.name, input."jobId", jobs.attempt, jobs.output,
               sum(octet_length(jobs.output::text)) OVER () AS bytes
        FROM json_to_recordset(inputs) AS input (name text, "jobId" uuid)
        LEFT JOIN jobs ON jobs.job_id = input."jobId" AND jobs.status = 'COMPLETED' AND jobs.deleted_at IS NULL
    ) AS parents
$$;
DROP VIEW all_jobs;
DROP TABLE ended;
