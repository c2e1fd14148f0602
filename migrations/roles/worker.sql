-- What the worker may do in its database, and nothing else: before this runs, all rights are taken away.

-- An attempt's key, worker and timeout stay what they were when it was claimed.
GRANT SELECT, INSERT, DELETE ON execution_attempts TO jobweaver_runjob;
GRANT UPDATE (
    started_at, finished_at, outcome, cancel_wanted, output, error_code, error_message, retryable, retry_after_ms,
    callback_timeout_ms
) ON execution_attempts TO jobweaver_runjob;
GRANT SELECT, INSERT, DELETE ON claims TO jobweaver_runjob;
GRANT UPDATE (job_ids, attempts) ON claims TO jobweaver_runjob;
GRANT SELECT, INSERT, DELETE ON workers TO jobweaver_runjob;
GRANT UPDATE (queues, free, seen_at) ON workers TO jobweaver_runjob;
