-- What each function may do in the api database, and nothing else: before this runs, all rights are taken away.
-- All functions may read whole rows, except bulk and cron, which never see a payload.
-- Why by hand: docs/decisions/security.md#rights-are-written-by-hand-and-verified-by-postgresql

-- Accepts requests and shows jobs. In jobs it changes numbers that it assigns, the outcomes of callbacks, and the
-- content of held jobs.
GRANT SELECT, INSERT ON jobs TO jobweaver_gateway;
GRANT UPDATE (
    command_seq, cancel_requested_at, progress, held, released_at, job_type, queue, payload, spec, tags, expires_at,
    fairness_key, callback_url, policies, run_at, status, updated_at,
    elements, event, waits
) ON jobs TO jobweaver_gateway;
GRANT SELECT, INSERT ON events, steps, waits TO jobweaver_gateway;
GRANT UPDATE (
    status, attempt, group_name, until_at, done_at, look_at, event_type, match, keys, first_key, event_number, run, child, child_end
) ON waits TO jobweaver_gateway;
GRANT SELECT, INSERT ON merged_submits TO jobweaver_gateway;
GRANT SELECT, INSERT ON callbacks, commands, schedule_ticks, tally_entries TO jobweaver_gateway;
GRANT UPDATE (number, command, by_whom, created_at, run_at, operation_id, change, change_hash) ON commands TO jobweaver_gateway;
GRANT SELECT, INSERT ON api_keys TO jobweaver_gateway;
GRANT EXECUTE ON FUNCTION api_keys_forget TO jobweaver_gateway;
GRANT UPDATE (expires_at, revoked_at, last_used_at) ON api_keys TO jobweaver_gateway;
GRANT SELECT, INSERT ON controls TO jobweaver_gateway;
GRANT UPDATE (
    version, paused, max_running, starts_per_second, weight, workers, updated_at, updated_by,
    least_paused, most_running, most_starts_per_second
) ON controls TO jobweaver_gateway;
GRANT SELECT, INSERT, DELETE ON queues TO jobweaver_gateway;
GRANT UPDATE (workers, state, created_at, created_by, removing_at, removed_at) ON queues TO jobweaver_gateway;
GRANT SELECT, INSERT ON operations TO jobweaver_gateway;
GRANT UPDATE (status, updated_at) ON operations TO jobweaver_gateway;
GRANT SELECT, INSERT ON batches TO jobweaver_gateway;
GRANT UPDATE (
    status, closed_at, expires_at, expired_at, finished_at, round, operation_id, counts, follow_up_id, follow_up_error,
    retry, graph, run, earlier_runs
) ON batches TO jobweaver_gateway;
GRANT SELECT, INSERT ON replaced_jobs TO jobweaver_gateway;
GRANT DELETE ON batch_deletions TO jobweaver_gateway;
GRANT SELECT, INSERT, DELETE ON schedules TO jobweaver_gateway;
GRANT UPDATE (
    cron, time_zone, anchor_at, job, overlap, missed, paused, start_at, end_at, next_at, last_at, last_job_id, updated_at
) ON schedules TO jobweaver_gateway;
GRANT SELECT, INSERT, DELETE ON alerts TO jobweaver_gateway;
GRANT UPDATE (
    job_type, queue, error_code, failures, percent, window_minutes, quiet_minutes, destination, paused, updated_at,
    firing_since, announced
) ON alerts TO jobweaver_gateway;
GRANT SELECT, INSERT, DELETE ON alert_notices TO jobweaver_gateway;
GRANT SELECT, INSERT, DELETE ON job_types TO jobweaver_gateway;
GRANT UPDATE (definition, updated_at) ON job_types TO jobweaver_gateway;
GRANT SELECT ON audit_log TO jobweaver_gateway; -- never UPDATE, never DELETE
GRANT INSERT ( -- the server numbers and dates entries
    owner_id, actor, action, resource, job_ids, remote_addr, user_agent, trace_id, details
) ON audit_log TO jobweaver_gateway;
GRANT SELECT ON deliveries TO jobweaver_gateway;
GRANT UPDATE (status, tries, next_at, finished_at) ON deliveries TO jobweaver_gateway;
GRANT INSERT ON webhook_ids TO jobweaver_gateway;
GRANT SELECT, DELETE ON rejected_records TO jobweaver_gateway;
GRANT UPDATE (redriven_at, redriven_by) ON rejected_records TO jobweaver_gateway;
GRANT SELECT ON attempt_logs, batch_deletions, deleted_jobs, failure_entries, failures, job_counts TO jobweaver_gateway;
GRANT SELECT ON operation_skips, owner_job_counts, tallies, workers TO jobweaver_gateway;
GRANT USAGE ON SEQUENCE order_numbers, control_versions TO jobweaver_gateway;

-- Stores the scheduler's statuses, and deletes old rows.
GRANT SELECT, INSERT, DELETE ON deleted_jobs TO jobweaver_projection;
GRANT SELECT, DELETE ON jobs TO jobweaver_projection;
GRANT UPDATE (
    status, version, attempt, retry_count, updated_at, snapshot, error_code, progress, cancel_requested_at, ended_as
) ON jobs TO jobweaver_projection;
GRANT SELECT, INSERT, DELETE ON callbacks TO jobweaver_projection;
GRANT UPDATE (answered_at, output) ON callbacks TO jobweaver_projection;
GRANT SELECT, DELETE ON commands TO jobweaver_projection;
GRANT SELECT, DELETE ON batches TO jobweaver_projection;
GRANT SELECT, DELETE ON replaced_jobs TO jobweaver_projection;
GRANT SELECT, DELETE ON controls TO jobweaver_projection;
GRANT UPDATE (applied_version) ON controls TO jobweaver_projection;
GRANT SELECT, INSERT, DELETE ON attempt_logs, failures, tally_entries TO jobweaver_projection;
GRANT SELECT, DELETE ON failure_entries TO jobweaver_projection;
GRANT UPDATE (kept, first_at, last_at, last_id, hours) ON failures TO jobweaver_projection;
GRANT SELECT, INSERT ON operation_answers TO jobweaver_projection;
GRANT SELECT, INSERT ON job_counts TO jobweaver_projection;
GRANT UPDATE (as_of, took, counts, ended) ON job_counts TO jobweaver_projection;
GRANT SELECT, INSERT, DELETE ON owner_job_counts TO jobweaver_projection;
GRANT UPDATE (counts, ended) ON owner_job_counts TO jobweaver_projection;
GRANT SELECT, INSERT, DELETE ON tallies TO jobweaver_projection;
GRANT UPDATE (n, kept, waited, ran, took, error_codes) ON tallies TO jobweaver_projection;
GRANT SELECT, INSERT, DELETE ON workers TO jobweaver_projection;
GRANT UPDATE (seen_at, beat) ON workers TO jobweaver_projection;
GRANT SELECT, INSERT ON job_types TO jobweaver_projection;
GRANT UPDATE (definition, updated_at) ON job_types TO jobweaver_projection;
GRANT SELECT, DELETE ON webhook_ids TO jobweaver_projection;
GRANT SELECT, DELETE ON events TO jobweaver_projection;
GRANT SELECT ON waits TO jobweaver_projection;
GRANT SELECT, INSERT, DELETE ON rejected_records TO jobweaver_projection;
GRANT EXECUTE ON FUNCTION end_before, enter_failures, enter_former_ends, enter_deliveries, update_waits TO jobweaver_projection;

-- Stores commands for the jobs of an operation.
GRANT SELECT (
    job_id, owner_id, job_type, queue, tags, trace_id, created_at, status, version, attempt, command_seq,
    cancel_requested_at, expires_at, ordering_key, error_code, idempotency_key, after_ids, batch_id, held,
    fan_out_id, updated_at
) ON jobs TO jobweaver_bulk;
GRANT EXECUTE ON FUNCTION failure_has TO jobweaver_bulk;
GRANT EXECUTE ON FUNCTION payload_has TO jobweaver_gateway, jobweaver_bulk;
GRANT UPDATE (command_seq, cancel_requested_at, held) ON jobs TO jobweaver_bulk;
GRANT SELECT (job_id, number, command, by_whom, run_at, operation_id) ON commands TO jobweaver_bulk; -- without the payload of a change
GRANT INSERT ON commands TO jobweaver_bulk;
GRANT UPDATE (number, command, by_whom, created_at, run_at, operation_id) ON commands TO jobweaver_bulk;
GRANT SELECT (job_id, attempt, received_at, answered_at) ON callbacks TO jobweaver_bulk;
GRANT SELECT, DELETE ON operations TO jobweaver_bulk;
GRANT UPDATE (
    status, updated_at, finished_at, after_id, walked, matched, asked, applied, refused, skipped, reasons
) ON operations TO jobweaver_bulk;
GRANT SELECT, DELETE ON operation_answers TO jobweaver_bulk;
GRANT INSERT ON operation_skips TO jobweaver_bulk;
GRANT SELECT (name, state) ON queues TO jobweaver_bulk;
GRANT SELECT ON replaced_jobs TO jobweaver_bulk;

-- Makes the jobs of schedules, and cancels those that overlap. Ends batches, and makes the jobs that follow them. Makes the
-- jobs that send the notices of alerts.
GRANT INSERT ON jobs TO jobweaver_cron;
GRANT SELECT (
    job_id, owner_id, trace_id, created_at, run_at, idempotency_key, request_hash, event_owner, event_source, event_id,
    status, version, attempt, command_seq, cancel_requested_at, expires_at, ordering_key, order_number, batch_id, policies,
    held, queue, fan_out_id, elements, run_again_of, job_type
) ON jobs TO jobweaver_cron;
GRANT UPDATE (command_seq, cancel_requested_at, held) ON jobs TO jobweaver_cron;
GRANT SELECT (job_id, number, command, by_whom, run_at, change_hash) ON commands TO jobweaver_cron; -- nor here
GRANT INSERT ON commands TO jobweaver_cron;
GRANT UPDATE (number, command, by_whom, created_at, run_at, operation_id, change, change_hash) ON commands TO jobweaver_cron;
GRANT SELECT (job_id, attempt, received_at, answered_at) ON callbacks TO jobweaver_cron;
GRANT SELECT ON schedules TO jobweaver_cron;
GRANT UPDATE (job, next_at, last_at, last_job_id) ON schedules TO jobweaver_cron;
GRANT SELECT, INSERT, DELETE ON schedule_ticks TO jobweaver_cron;
GRANT SELECT, INSERT, DELETE ON schedule_cancels TO jobweaver_cron;
GRANT SELECT ON alerts, tallies TO jobweaver_cron;
GRANT UPDATE (destination, firing_since, announced, announced_at) ON alerts TO jobweaver_cron;
GRANT SELECT, INSERT, DELETE ON alert_notices TO jobweaver_cron;
GRANT INSERT ON tally_entries TO jobweaver_cron;
GRANT SELECT ON batches, batch_deletions, queues, replaced_jobs TO jobweaver_cron;
GRANT UPDATE (
    status, closed_at, expired_at, finished_at, operation_id, counts, follow_up_id, follow_up_error, retry
) ON batches TO jobweaver_cron;
GRANT INSERT ON operations TO jobweaver_cron;
GRANT SELECT (operation_id, finished_at, owner_id, idempotency_key) ON operations TO jobweaver_cron;
GRANT SELECT ON waits TO jobweaver_cron;
GRANT UPDATE (status, done_at, look_at) ON waits TO jobweaver_cron;
GRANT USAGE ON SEQUENCE order_numbers TO jobweaver_cron;

-- Delivers the ends of jobs.
GRANT SELECT, DELETE ON deliveries TO jobweaver_notify;
GRANT UPDATE (
    status, tries, next_at, last_try_at, last_answer, last_error, finished_at
) ON deliveries TO jobweaver_notify;

-- The index of jobs calls shelf_of at each write.
GRANT EXECUTE ON FUNCTION shelf_of TO jobweaver_gateway, jobweaver_projection, jobweaver_bulk, jobweaver_cron;
GRANT EXECUTE ON FUNCTION attempt_is_over TO jobweaver_gateway, jobweaver_projection, jobweaver_bulk, jobweaver_cron;
GRANT EXECUTE ON FUNCTION times_due, audit_forget TO jobweaver_projection;
