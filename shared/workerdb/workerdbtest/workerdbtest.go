// Package workerdbtest has what tests of several packages do to the database of workers.
package workerdbtest

// MoveAll gives all open attempts rows of their own, as a heartbeat does with those that run.
const MoveAll = `WITH moved AS (
		UPDATE blocks SET moved = taken & ~completed
		RETURNING block_id, attempt, new.moved & ~old.moved AS places, workers, shares
	), listed AS (
		SELECT DISTINCT worker_id, unnest(job_ids) AS job_id, unnest(attempts) AS attempt, unnest(trace_ids) AS trace_id
		FROM claims
	)
	INSERT INTO execution_attempts (job_id, attempt, trace_id, worker_id, timeout_ms)
	SELECT job_id, moved.attempt, trace_id, worker_id, 60000
	FROM moved
	JOIN listed ON block_of(job_id) = block_id AND listed.attempt = moved.attempt
	WHERE places & share_of(workers, shares, worker_id) & (1::bigint << place_of(job_id)) <> 0`
