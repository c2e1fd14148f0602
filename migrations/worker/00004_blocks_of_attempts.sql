-- +goose Up
INSERT INTO blocks (block_id, attempt, worker_id, taken, moved)
SELECT block_of(job_id), attempt, min(worker_id), bit_or(1::bigint << place_of(job_id)), bit_or(1::bigint << place_of(job_id))
FROM execution_attempts
GROUP BY 1, 2;
