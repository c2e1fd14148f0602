-- +goose Up
-- The build on which further attempts of a job run while a worker has that build. Null: any build; empty: no attempt
-- has begun yet.
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS build text;
ALTER TABLE workers ADD COLUMN IF NOT EXISTS build text;

-- A control of a worker makes it drain.
ALTER TABLE controls
    DROP CONSTRAINT IF EXISTS controls_kind_check,
    ADD CONSTRAINT controls_kind_check CHECK (kind IN ('queue', 'type', 'owner', 'fairnessKey', 'worker'));

-- +goose Down
ALTER TABLE workers DROP COLUMN build;
ALTER TABLE jobs DROP COLUMN build;
DELETE FROM controls WHERE kind = 'worker';
ALTER TABLE controls
    DROP CONSTRAINT controls_kind_check,
    ADD CONSTRAINT controls_kind_check CHECK (kind IN ('queue', 'type', 'owner', 'fairnessKey'));
