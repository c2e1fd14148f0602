-- +goose Up
-- How a dependency has to end: completed, ended or failed. Null: completed, or ended for a job that runs anyway.
ALTER TABLE dependencies ADD COLUMN IF NOT EXISTS condition text
    CHECK (condition IN ('completed', 'ended', 'failed'));

-- The jobs whose outputs the payload refers to, each with the name that it has there; null: none.
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS inputs json;

-- These jobs as a run order carries them. If their outputs have more than 512 KiB, it carries none of them.
CREATE FUNCTION parents_of(inputs json) RETURNS json LANGUAGE sql STABLE AS $$
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

-- +goose Down
DROP FUNCTION parents_of;
ALTER TABLE jobs DROP COLUMN inputs;
ALTER TABLE dependencies DROP COLUMN condition;
