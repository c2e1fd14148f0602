-- +goose Up
-- True: further attempts of the job stay on the build that began it. Null: any worker may run them.
ALTER TABLE jobs ADD COLUMN keep_build boolean;

-- A control of a worker makes it drain. The control is deleted with the worker.
ALTER TABLE controls
    DROP CONSTRAINT controls_kind_check,
    ADD CONSTRAINT controls_kind_check CHECK (kind IN ('queue', 'type', 'owner', 'fairnessKey', 'worker'));

-- +goose Down
ALTER TABLE jobs DROP COLUMN keep_build;
DELETE FROM controls WHERE kind = 'worker';
ALTER TABLE controls
    DROP CONSTRAINT controls_kind_check,
    ADD CONSTRAINT controls_kind_check CHECK (kind IN ('queue', 'type', 'owner', 'fairnessKey'));
