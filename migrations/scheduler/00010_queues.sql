-- +goose Up
-- The control of a queue that was created through the API has the function that serves it. It makes workers serve the queue.
ALTER TABLE controls
    ADD COLUMN IF NOT EXISTS workers text CHECK (workers IN ('runjob', 'pull')),
    DROP CONSTRAINT IF EXISTS controls_kind_check,
    ADD CONSTRAINT controls_kind_check
        CHECK (kind IN ('queue', 'type', 'owner', 'fairnessKey', 'worker', 'createdQueue'));

-- +goose Down
DELETE FROM controls WHERE kind = 'createdQueue';
ALTER TABLE controls
    DROP COLUMN workers,
    DROP CONSTRAINT controls_kind_check,
    ADD CONSTRAINT controls_kind_check CHECK (kind IN ('queue', 'type', 'owner', 'fairnessKey', 'worker'));
