-- +goose Up
-- The schedules.
CREATE TABLE schedules (
    schedule_id uuid PRIMARY KEY,
    owner_id    text        NOT NULL,
    name        text        NOT NULL CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,99}$'),
    cron        text        NOT NULL,
    time_zone   text        NOT NULL,
    anchor_at   timestamptz NOT NULL,               -- from which @every counts
    job         json        NOT NULL,               -- the request, as it was sent
    overlap     text        NOT NULL CHECK (overlap IN ('allow', 'skip', 'cancel')),
    missed      text        NOT NULL CHECK (missed IN ('skip', 'one', 'all')),
    paused      boolean     NOT NULL,
    start_at    timestamptz,
    end_at      timestamptz,
    next_at     timestamptz,                        -- the first tick without a row in schedule_ticks; null: none will come
    last_at     timestamptz,                        -- the last tick that fired, and its job
    last_job_id uuid,
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now(),
    UNIQUE (name, owner_id)
);

CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL AND NOT paused;

-- The result of each tick. A job shows its tick by the identity of its event.
CREATE TABLE schedule_ticks (
    schedule_id uuid        NOT NULL REFERENCES schedules ON DELETE CASCADE,
    at          timestamptz NOT NULL,
    outcome     text        NOT NULL CHECK (outcome IN ('fired', 'skipped')),
    reason      text        NOT NULL DEFAULT '',
    job_id      uuid,
    recorded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (schedule_id, at),
    CHECK ((outcome = 'fired') = (job_id IS NOT NULL))
);

-- +goose Down
DROP TABLE schedule_ticks;
DROP TABLE schedules;
