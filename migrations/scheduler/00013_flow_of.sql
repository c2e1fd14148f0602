-- +goose NO TRANSACTION
-- +goose Up
-- The flow of a job; null: none. Retention keeps the jobs of a flow while one of them has not ended, because it may need
-- their outputs; and while one that has failed is kept, because a retry may need them.
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS flow_id uuid;
ALTER TABLE ended ADD COLUMN IF NOT EXISTS flow_id uuid;
CREATE OR REPLACE VIEW all_jobs AS
SELECT job_id, trace_id, job_type, queue, payload, priority, max_retry_count, retry_policy, timeout_ms, status, version,
       attempt, retry_count, rank, due_at, callback_deadline_at, cancel_requested_at, command_seq, last_command, history,
       output, error_code, error_message, started_at, finished_at, created_at, updated_at, owner_id, lane, blocked_by,
       ordering_key, order_number, expires_at, deleted_at, fairness_key, build, inputs, flow_id
FROM jobs
UNION ALL
SELECT job_id, trace_id, job_type, queue, payload, priority, max_retry_count, retry_policy, timeout_ms, 'COMPLETED', version,
       attempt, retry_count, finished_at, null, null, null, command_seq, last_command, history,
       output, null, null, started_at, finished_at, created_at, updated_at, owner_id, null, null,
       ordering_key, order_number, expires_at, deleted_at, fairness_key, build, inputs, flow_id
FROM ended;
DROP INDEX CONCURRENTLY IF EXISTS jobs_of_flow;
CREATE INDEX CONCURRENTLY jobs_of_flow ON jobs (flow_id, status)
    WHERE flow_id IS NOT NULL AND deleted_at IS NULL AND status NOT IN ('COMPLETED', 'CANCELLED');

-- +goose Down
DROP INDEX jobs_of_flow;
DROP VIEW all_jobs;
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
ALTER TABLE ended DROP COLUMN flow_id;
ALTER TABLE jobs DROP COLUMN flow_id;
