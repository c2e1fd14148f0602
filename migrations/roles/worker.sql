-- What workers may do in their database, and nothing else: before this runs, all rights are taken away.

-- An attempt's key, worker and timeout never change after its claim.
GRANT SELECT, INSERT, DELETE ON execution_attempts TO jobweaver_runjob, jobweaver_pull;
GRANT UPDATE (
    started_at, finished_at, outcome, cancel_wanted, output, error_code, error_message, retryable, retry_after_ms,
    callback_timeout_ms
) ON execution_attempts TO jobweaver_runjob, jobweaver_pull;
GRANT SELECT, INSERT, DELETE ON claims TO jobweaver_runjob, jobweaver_pull;
GRANT UPDATE (job_ids, attempts) ON claims TO jobweaver_runjob, jobweaver_pull;
GRANT SELECT, INSERT, DELETE ON workers TO jobweaver_runjob, jobweaver_pull;
GRANT UPDATE (queues, free, seen_at) ON workers TO jobweaver_runjob, jobweaver_pull;
GRANT SELECT, INSERT, DELETE ON checkpoints TO jobweaver_runjob, jobweaver_pull;
GRANT UPDATE (attempt, number, data, saved_at) ON checkpoints TO jobweaver_runjob, jobweaver_pull;
