-- +goose Up

-- Of attempts that have no row of their own.
ALTER TABLE claims ADD trace_ids uuid[] NOT NULL DEFAULT '{}';
ALTER TABLE claims ALTER trace_ids SET STORAGE EXTERNAL;
ALTER TABLE claims ALTER trace_ids DROP DEFAULT;

ALTER TABLE execution_attempts DROP queue;
ALTER TABLE execution_attempts ALTER timeout_ms DROP NOT NULL; -- null: unknown until its worker's next heartbeat
ALTER TABLE execution_attempts DROP claimed_at;
