-- +goose Up
-- A fan-out, which is WAITING, has a place in the order of its key.
ALTER TABLE jobs ADD CONSTRAINT jobs_blocked_while CHECK (
    CASE WHEN blocked_by IS NULL THEN true
         ELSE blocked_by IN ('order', 'dependency') AND status IN ('SCHEDULED', 'PENDING', 'WAITING') END) NOT VALID;
ALTER TABLE jobs DROP CONSTRAINT jobs_blocked;

-- +goose Down
ALTER TABLE jobs ADD CONSTRAINT jobs_blocked CHECK (
    CASE WHEN blocked_by IS NULL THEN true
         ELSE blocked_by IN ('order', 'dependency') AND status IN ('SCHEDULED', 'PENDING') END) NOT VALID;
ALTER TABLE jobs DROP CONSTRAINT jobs_blocked_while;
