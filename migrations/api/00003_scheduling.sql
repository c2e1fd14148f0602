-- +goose Up
ALTER TABLE jobs
    ADD COLUMN expires_at   timestamptz, -- cancelled if it has not started by then
    ADD COLUMN ordering_key text,        -- an owner's jobs with the same key run one after another, by order_number
    ADD COLUMN order_number bigint,
    ADD COLUMN order_after  uuid,        -- the last job of the key that had not ended when this one was accepted
    ADD COLUMN after_ids    uuid[],      -- the jobs that must end first; null: none
    ADD COLUMN runs_anyway  boolean;     -- whether it runs even if one of those did not complete; null: no

-- Numbers are taken under a lock on their key, so for one key they rise in the order of commits.
CREATE SEQUENCE order_numbers;
CREATE INDEX jobs_ordered ON jobs (ordering_key, owner_id, order_number)
    WHERE ordering_key IS NOT NULL AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');
CREATE INDEX jobs_of_key ON jobs (ordering_key, job_id) WHERE ordering_key IS NOT NULL; -- for a list of them

ALTER TABLE commands
    ADD COLUMN run_at       timestamptz,
    ADD COLUMN operation_id uuid,        -- of the operation that stored it; null: a request of its own
    DROP CONSTRAINT commands_command_check,
    ADD CONSTRAINT commands_command_check CHECK (
        command IN ('cancel', 'retry', 'reschedule', 'delete') AND (command = 'reschedule') = (run_at IS NOT NULL));

-- +goose Down
DELETE FROM commands WHERE command NOT IN ('cancel', 'retry');
ALTER TABLE commands
    DROP CONSTRAINT commands_command_check,
    ADD CONSTRAINT commands_command_check CHECK (command IN ('cancel', 'retry')),
    DROP COLUMN operation_id,
    DROP COLUMN run_at;
DROP INDEX jobs_of_key;
DROP INDEX jobs_ordered;
DROP SEQUENCE order_numbers;
ALTER TABLE jobs
    DROP COLUMN runs_anyway,
    DROP COLUMN after_ids,
    DROP COLUMN order_after,
    DROP COLUMN order_number,
    DROP COLUMN ordering_key,
    DROP COLUMN expires_at;
