-- +goose Up

-- Rules that send a notice when enough jobs have failed, and when that is over. cron compares them with the tallies.
CREATE TABLE alerts (
    alert_id       uuid PRIMARY KEY,
    owner_id       text        NOT NULL,                -- empty: the installation's, about the jobs of all owners
    name           text        NOT NULL CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,99}$'),
    job_type       text        NOT NULL,                -- empty: any
    queue          text        NOT NULL,
    error_code     text        NOT NULL,
    failures       integer     NOT NULL CHECK (failures > 0),
    percent        integer     NOT NULL CHECK (percent BETWEEN 0 AND 100), -- of the ended jobs; 0: however many ended
    window_minutes integer     NOT NULL CHECK (window_minutes > 0),
    quiet_minutes  integer     NOT NULL CHECK (quiet_minutes > 0),
    destination    json        NOT NULL,                -- may be sealed
    paused         boolean     NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now(),
    -- The following columns have its state.
    firing_since   timestamptz,                         -- null: it does not fire
    announced      boolean     NOT NULL DEFAULT false,  -- a notice was sent since then
    announced_at   timestamptz,                         -- when the last notice that it fires was sent
    UNIQUE (name, owner_id),
    CHECK (firing_since IS NOT NULL OR NOT announced)
);
CREATE INDEX alerts_owned ON alerts (owner_id, name);
CREATE INDEX alerts_firing ON alerts (name, owner_id) WHERE firing_since IS NOT NULL;

-- The last notices of each alert, and the jobs that send them.
CREATE TABLE alert_notices (
    alert_id  uuid        NOT NULL REFERENCES alerts ON DELETE CASCADE,
    notice_id uuid        NOT NULL,                     -- UUIDv7: the key orders by age
    at        timestamptz NOT NULL DEFAULT now(),
    state     text        NOT NULL CHECK (state IN ('FIRING', 'RESOLVED', 'TEST')),
    failed    bigint      NOT NULL,
    ended     bigint      NOT NULL,
    job_id    uuid        NOT NULL,
    PRIMARY KEY (alert_id, notice_id)
);

-- +goose Down
DROP TABLE alert_notices, alerts;
