-- +goose Up
-- Deliveries take turns owner by owner, and host by host of an owner. deliveries_due_by_host is what the version before
-- uses.
CREATE INDEX deliveries_due_by_owner ON deliveries (owner_id, host, next_at) WHERE status = 'PENDING';

-- +goose Down
DROP INDEX deliveries_due_by_owner;
