-- +goose Up
-- How many an owner has is asked when it makes one more.
CREATE INDEX schedules_owned ON schedules (owner_id);

-- +goose Down
DROP INDEX schedules_owned;
