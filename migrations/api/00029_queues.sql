-- +goose Up
-- The queues that were created through the API; those of QUEUES have no row. A removed one stays for a while, so that a
-- job that came too late is found, and a retry of its jobs is refused.
CREATE TABLE IF NOT EXISTS queues (
    name        text PRIMARY KEY CHECK (name ~ '^[a-z0-9-]{1,63}$'),
    workers     text        NOT NULL CHECK (workers IN ('runjob', 'pull')),
    state       text        NOT NULL DEFAULT 'ACTIVE' CHECK (state IN ('ACTIVE', 'REMOVING', 'REMOVED')),
    created_at  timestamptz NOT NULL DEFAULT now(),
    created_by  text        NOT NULL,
    removing_at timestamptz,
    removed_at  timestamptz,
    CHECK ((removing_at IS NULL) = (state = 'ACTIVE') AND (removed_at IS NULL) = (state <> 'REMOVED'))
);

-- The control of a created queue has the function that serves it. It makes workers serve the queue.
ALTER TABLE controls
    ADD COLUMN IF NOT EXISTS workers text CHECK (workers IN ('runjob', 'pull')),
    DROP CONSTRAINT controls_kind_check,
    ADD CONSTRAINT controls_kind_check
        CHECK (kind IN ('queue', 'type', 'owner', 'fairnessKey', 'worker', 'createdQueue'));

-- +goose Down
DELETE FROM controls WHERE kind = 'createdQueue';
ALTER TABLE controls
    DROP COLUMN workers,
    DROP CONSTRAINT controls_kind_check,
    ADD CONSTRAINT controls_kind_check CHECK (kind IN ('queue', 'type', 'owner', 'fairnessKey', 'worker'));
DROP TABLE queues;
