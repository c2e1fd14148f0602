-- +goose Up
-- The jobs of a flow that are still to run again, by their ids; null: the flow is not being retried.
ALTER TABLE batches ADD COLUMN IF NOT EXISTS retry json;

-- +goose Down
ALTER TABLE batches DROP COLUMN retry;
