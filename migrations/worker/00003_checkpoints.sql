-- +goose Up
-- What the attempts of a job have saved for its next attempt. A job without a checkpoint has no row, and a job that
-- completes loses its row.
CREATE TABLE checkpoints (
    job_id   uuid        PRIMARY KEY,
    attempt  integer     NOT NULL,                -- that saved it
    number   bigint      NOT NULL,                -- of the save, rising within the attempt
    data     json        NOT NULL,                -- at most 64 KiB before it is sealed
    saved_at timestamptz NOT NULL DEFAULT now()
);

-- +goose Down
DROP TABLE checkpoints;
