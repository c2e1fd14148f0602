-- +goose Up
ALTER TABLE commands
    ADD COLUMN change json, -- the new properties of the job, valid once the scheduler has applied them; the payload may be sealed
    ADD COLUMN change_hash bytea, -- of the request, to recognize a repeated one
    DROP CONSTRAINT commands_command_check,
    ADD CONSTRAINT commands_command_check CHECK (
        command IN ('cancel', 'retry', 'reschedule', 'delete', 'change') AND (command = 'reschedule') = (run_at IS NOT NULL)
        AND (command = 'change') = (change IS NOT NULL) AND (command = 'change') = (change_hash IS NOT NULL));

-- The API applies a change as a whole, in the transaction that stores the scheduler's answer and deletes the command. A
-- trigger does it, so that it also happens with a projection of the previous version, which knows no changes and has no
-- right to these columns. The answer is at the end of the snapshot, behind the handler's output.
-- +goose StatementBegin
CREATE FUNCTION apply_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    applied text := format('"lastCommand":{"number":%s,"command":"change","applied":true}}', old.number);
BEGIN
    UPDATE public.jobs SET
        queue           = coalesce(old.change ->> 'queue', queue),
        payload         = coalesce(old.change -> 'payload', payload),
        priority        = coalesce((old.change ->> 'priority')::smallint, priority),
        max_retry_count = coalesce((old.change ->> 'maxRetryCount')::smallint, max_retry_count),
        retry_policy    = coalesce(old.change -> 'retryPolicy', retry_policy),
        timeout_ms      = coalesce((old.change ->> 'timeoutMs')::integer, timeout_ms),
        run_at          = coalesce((old.change ->> 'runAt')::timestamptz, run_at),
        expires_at      = CASE WHEN (old.change ->> 'neverExpires')::boolean THEN NULL
                               ELSE coalesce((old.change ->> 'expiresAt')::timestamptz, expires_at) END,
        tags            = CASE WHEN old.change -> 'tags' IS NULL THEN tags
                               ELSE ARRAY(SELECT json_array_elements_text(old.change -> 'tags')) END
    WHERE job_id = old.job_id AND right(snapshot, length(applied)) = applied;
    RETURN NULL;
END $$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION apply_change FROM PUBLIC;
CREATE TRIGGER commands_change AFTER DELETE ON commands FOR EACH ROW WHEN (old.command = 'change')
    EXECUTE FUNCTION apply_change();

-- +goose Down
DELETE FROM commands WHERE command = 'change';
DROP TRIGGER commands_change ON commands;
DROP FUNCTION apply_change;
ALTER TABLE commands
    DROP CONSTRAINT commands_command_check,
    ADD CONSTRAINT commands_command_check CHECK (
        command IN ('cancel', 'retry', 'reschedule', 'delete') AND (command = 'reschedule') = (run_at IS NOT NULL)),
    DROP COLUMN change_hash,
    DROP COLUMN change;
