-- +goose Up
-- The build that is to run the further attempts of a job while a worker has it. Null: any may; empty: none has begun.
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS build text;
ALTER TABLE workers ADD COLUMN IF NOT EXISTS build text;

-- A control of a worker has it drain.
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
