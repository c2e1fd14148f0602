-- +goose Up
-- The attributes of the CloudEvent that submitted a job, for its handler. Null: none did.
ALTER TABLE jobs ADD COLUMN event json;
ALTER TABLE ended ADD COLUMN event json;
CREATE OR REPLACE VIEW all_jobs AS
SELECT job_id, trace_id, job_type, queue, payload, priority, max_retry_count, retry_policy, timeout_ms, status, version,
       attempt, retry_count, rank, due_at, callback_deadline_at, cancel_requested_at, command_seq, last_command, history,
       output, error_code, error_message, started_at, finished_at, created_at, updated_at, owner_id, lane, blocked_by,
       ordering_key, order_number, expires_at, deleted_at, fairness_key, build, inputs, flow_id, event
FROM jobs
UNION ALL
SELECT job_id, trace_id, job_type, queue, payload, priority, max_retry_count, retry_policy, timeout_ms, 'COMPLETED', version,
       attempt, retry_count, finished_at, null, null, null, command_seq, last_command, history,
       output, null, null, started_at, finished_at, created_at, updated_at, owner_id, null, null,
       ordering_key, order_number, expires_at, deleted_at, fairness_key, build, inputs, flow_id, event
FROM ended;

-- +goose Down
DROP VIEW all_jobs;
CREATE VIEW all_jobs AS
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
ALTER TABLE ended DROP COLUMN event;
ALTER TABLE jobs DROP COLUMN event;
