-- What each function may do in the scheduler database, and nothing else: before this runs, all rights are taken away.
-- Every function that brings work or makes room also dispatches, so five functions need nearly the same rights.

GRANT SELECT, UPDATE ON jobs
    TO jobweaver_ingest, jobweaver_dispatch, jobweaver_outcome, jobweaver_command, jobweaver_watchdog;
GRANT SELECT ON all_jobs
    TO jobweaver_ingest, jobweaver_dispatch, jobweaver_outcome, jobweaver_command, jobweaver_watchdog;
GRANT SELECT, UPDATE ON dispatch_state
    TO jobweaver_ingest, jobweaver_dispatch, jobweaver_outcome, jobweaver_command, jobweaver_watchdog;
GRANT SELECT, DELETE ON dependencies
    TO jobweaver_ingest, jobweaver_dispatch, jobweaver_outcome, jobweaver_command, jobweaver_watchdog;
GRANT SELECT ON controls, workers
    TO jobweaver_ingest, jobweaver_dispatch, jobweaver_outcome, jobweaver_command, jobweaver_watchdog;
GRANT SELECT (job_id) ON order_gaps
    TO jobweaver_dispatch, jobweaver_outcome, jobweaver_command, jobweaver_watchdog;

-- Members of a cohort are dispatched, or get rows of jobs.
GRANT SELECT, UPDATE (waiting, out), DELETE ON cohorts
    TO jobweaver_ingest, jobweaver_dispatch, jobweaver_outcome, jobweaver_command, jobweaver_watchdog;
GRANT SELECT, INSERT, UPDATE (out), DELETE ON dispatched
    TO jobweaver_ingest, jobweaver_dispatch, jobweaver_outcome, jobweaver_command, jobweaver_watchdog;
GRANT SELECT ON ended_cohorts, ended_members, members
    TO jobweaver_ingest, jobweaver_dispatch, jobweaver_outcome, jobweaver_command, jobweaver_watchdog;
GRANT INSERT ON jobs TO jobweaver_dispatch, jobweaver_outcome, jobweaver_command, jobweaver_watchdog;
GRANT SELECT ON attempts_out TO jobweaver_command, jobweaver_watchdog;

-- Stores jobs and their dependencies.
GRANT INSERT ON jobs, cohorts, dependencies TO jobweaver_ingest;
GRANT SELECT, INSERT, DELETE ON order_gaps TO jobweaver_ingest;

-- Keeps commands until their jobs arrive.
GRANT SELECT, INSERT, DELETE ON early_commands TO jobweaver_command;
GRANT SELECT, DELETE ON early_commands TO jobweaver_ingest;

-- Moves jobs that complete to ended, and members of cohorts to ended_cohorts.
GRANT DELETE ON jobs TO jobweaver_outcome;
GRANT SELECT ON cohorts_out TO jobweaver_outcome;
GRANT INSERT ON ended, ended_cohorts TO jobweaver_outcome;

-- Moves completed jobs back, to apply commands to them.
GRANT SELECT, INSERT, UPDATE (job_id), DELETE ON ended TO jobweaver_command;
GRANT DELETE ON ended_cohorts TO jobweaver_command;

-- Applies pauses and limits.
GRANT INSERT, DELETE ON controls TO jobweaver_command, jobweaver_watchdog;
GRANT UPDATE (version, paused, max_running, starts_per_second, weight, workers) ON controls
    TO jobweaver_command, jobweaver_watchdog;

-- Consumes the workers' heartbeats.
GRANT INSERT, DELETE ON workers TO jobweaver_watchdog;
GRANT SELECT, INSERT, DELETE ON unserved TO jobweaver_watchdog;
GRANT UPDATE (partitions, slots, rate, job_types, demands, rooms, build, seen_at) ON workers TO jobweaver_watchdog;

-- Empties the rows of jobs that ended long ago, without reading them, and deletes emptied rows. Jobs that share a row of
-- ended_cohorts get emptied rows of ended.
GRANT SELECT (job_id, trace_id, status, version, attempt, error_code, updated_at, finished_at, deleted_at, flow_id) ON jobs
    TO jobweaver_retention;
GRANT UPDATE (version, payload, spec, event, last_command, history, moves, output, updated_at, deleted_at) ON jobs
    TO jobweaver_retention;
GRANT SELECT (job_id, trace_id, version, attempt, updated_at, finished_at, deleted_at, flow_id) ON ended TO jobweaver_retention;
GRANT UPDATE (version, payload, spec, event, last_command, history, moves, output, updated_at, deleted_at) ON ended
    TO jobweaver_retention;
GRANT INSERT ON ended TO jobweaver_retention;
GRANT DELETE ON jobs, ended, ended_cohorts TO jobweaver_retention;
GRANT SELECT (block_id, places, ended_at) ON ended_cohorts TO jobweaver_retention;
GRANT UPDATE (places) ON ended_cohorts TO jobweaver_retention; -- to lock rows
GRANT SELECT (block_id, places, job_id, trace_id, job_type, queue, version, attempt, started_at, finished_at, created_at,
              owner_id, fairness_key) ON ended_members TO jobweaver_retention;

-- The function that a CHECK calls at each write, the one that reads outputs for run orders, those that append to a
-- history, the one that finds cohorts, and those that count suspects.
GRANT EXECUTE ON FUNCTION job_is_possible TO jobweaver_ingest, jobweaver_dispatch, jobweaver_outcome, jobweaver_command,
    jobweaver_watchdog, jobweaver_retention;
GRANT EXECUTE ON FUNCTION parents_of TO jobweaver_ingest, jobweaver_dispatch, jobweaver_outcome, jobweaver_command,
    jobweaver_watchdog;
GRANT EXECUTE ON FUNCTION last_moves, history_with, best_cohorts, status_of, block_of, place_of
    TO jobweaver_ingest, jobweaver_dispatch, jobweaver_outcome, jobweaver_command, jobweaver_watchdog;
GRANT EXECUTE ON FUNCTION suspects_free, suspects_without_place TO jobweaver_dispatch;
