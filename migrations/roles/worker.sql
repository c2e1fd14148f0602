-- What workers may do in their database, and nothing else: before this runs, all rights are taken away.

-- The key and worker of an attempt's row never change.
GRANT SELECT, INSERT, DELETE ON execution_attempts TO jobweaver_runjob, jobweaver_pull;
GRANT UPDATE (
    timeout_ms, started_at, finished_at, outcome, cancel_wanted, output, error_code, error_message, retryable, retry_after_ms,
    callback_timeout_ms
) ON execution_attempts TO jobweaver_runjob, jobweaver_pull;
GRANT SELECT, INSERT, DELETE ON blocks TO jobweaver_runjob, jobweaver_pull;
GRANT UPDATE (taken, workers, shares, moved, completed, cancel_wanted, places, started_at, finished_at, outputs)
    ON blocks TO jobweaver_runjob, jobweaver_pull;
GRANT SELECT, INSERT, DELETE ON claims TO jobweaver_runjob, jobweaver_pull;
GRANT UPDATE (job_ids, attempts, trace_ids) ON claims TO jobweaver_runjob, jobweaver_pull;
GRANT SELECT, INSERT, DELETE ON workers TO jobweaver_runjob, jobweaver_pull;
GRANT UPDATE (queues, free, seen_at) ON workers TO jobweaver_runjob, jobweaver_pull;
GRANT SELECT, INSERT, DELETE ON checkpoints TO jobweaver_runjob, jobweaver_pull;
GRANT UPDATE (attempt, number, data, saved_at) ON checkpoints TO jobweaver_runjob, jobweaver_pull;
GRANT EXECUTE ON FUNCTION block_of, place_of, last_of, index_of, share_of TO jobweaver_runjob, jobweaver_pull;
