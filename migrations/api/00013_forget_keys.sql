-- +goose Up
-- The only way by which a function deletes keys: an owner's, 30 days after they were revoked or expired. A bootstrap
-- key stays: without its row the gateway would make the key of its setting anew, and a revoked one would be valid
-- again.
-- +goose StatementBegin
CREATE FUNCTION api_keys_forget(owner text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    forgotten bigint;
BEGIN
    DELETE FROM public.api_keys
    WHERE owner_id = owner AND least(revoked_at, expires_at) < now() - interval '30 days' AND created_by <> 'bootstrap';
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    RETURN forgotten;
END $$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION api_keys_forget FROM PUBLIC;

-- +goose Down
DROP FUNCTION api_keys_forget;
