-- +goose Up
-- Deliveries take turns by owner, and by host within an owner. The previous version uses deliveries_due_by_host.
CREATE INDEX deliveries_due_by_owner ON deliveries (owner_id, host, next_at) WHERE status = 'PENDING';

-- +goose Down
DROP INDEX deliveries_due_by_owner;
