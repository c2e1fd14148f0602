-- +goose Up
-- An owner's schedules are counted when it creates one.
CREATE INDEX schedules_owned ON schedules (owner_id);

-- +goose Down
DROP INDEX schedules_owned;
