-- +goose Up
-- What holds for all jobs of a queue, a job type or an owner. One that holds nothing is gone once the scheduler knows.
CREATE TABLE controls (
    kind              text             NOT NULL CHECK (kind IN ('queue', 'type', 'owner')),
    name              text             NOT NULL CHECK (length(name) BETWEEN 1 AND 255),
    version           bigint           NOT NULL,
    paused            boolean          NOT NULL,
    max_running       integer CHECK (max_running >= 0),
    starts_per_second double precision CHECK (starts_per_second > 0),
    applied_version   bigint           NOT NULL DEFAULT 0, -- by which the scheduler goes
    updated_at        timestamptz      NOT NULL DEFAULT now(),
    updated_by        text             NOT NULL,
    PRIMARY KEY (kind, name)
);
-- Not a count in the row: the row goes, and what comes after it must still be newer.
CREATE SEQUENCE control_versions;

-- +goose Down
DROP SEQUENCE control_versions;
DROP TABLE controls;
