// Package workerdbtest has what tests of several packages do to the database of workers.
package workerdbtest

// MoveAll gives all open attempts rows of their own, as a heartbeat does with those that run.
const MoveAll = `WITH moved AS (
		UPDATE blocks SET moved = taken & ~completed RETURNING block_id, attempt, worker_id, new.moved & ~old.moved AS places
	), listed AS (
		SELECT DISTINCT unnest(job_ids) AS job_id, unnest(attempts) AS attempt, unnest(trace_ids) AS trace_id FROM claims
	)
	INSERT INTO execution_attempts (job_id, attempt, trace_id, worker_id, timeout_ms)
	SELECT job_id, moved.attempt, trace_id, worker_id, 60000
	FROM moved
	JOIN listed ON block_of(job_id) = block_id AND listed.attempt = moved.attempt
	WHERE places & (1::bigint << place_of(job_id)) <> 0`
