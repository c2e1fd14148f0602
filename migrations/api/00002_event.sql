-- +goose Up
-- The attributes of the CloudEvent that submitted a job, an object as in CloudEvents' JSON format without the data. Null:
-- none did. A job that runs again has the event of the first one, but neither its event_source nor its event_id, by which
-- a repeated event is recognised.
ALTER TABLE jobs ADD COLUMN event json;

-- +goose Down
ALTER TABLE jobs DROP COLUMN event;
