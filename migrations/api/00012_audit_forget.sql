-- +goose Up
-- The only way by which a function deletes entries of the audit log: the oldest ones, some at a time, that are older
-- than age. It refuses an age of less than 30 days. It compares instants: '-12000 months 360030 days' equals 30 days,
-- and leads into the future.
-- +goose StatementBegin
CREATE FUNCTION audit_forget(age interval, max_entries integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    until timestamptz := now() - age;
    forgotten bigint;
BEGIN
    IF until IS NULL OR until > now() - interval '720 hours' THEN
        RAISE insufficient_privilege USING MESSAGE = 'the audit log keeps entries for 30 days at least';
    END IF;
    DELETE FROM public.audit_log AS entry
    WHERE entry.audit_id IN (SELECT oldest.audit_id FROM public.audit_log AS oldest ORDER BY oldest.audit_id LIMIT max_entries)
        AND entry.at < until;
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    RETURN forgotten;
END $$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION audit_forget FROM PUBLIC;

-- +goose Down
DROP FUNCTION audit_forget;
