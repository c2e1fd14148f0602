-- +goose Up
-- The commands that came before their jobs. Written under the dispatch lock, so that no job is inserted without them.
CREATE TABLE early_commands (
    job_id  uuid        NOT NULL,
    number  integer     NOT NULL,
    command json        NOT NULL,
    kept_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job_id, number)
);

-- +goose Down
DROP TABLE early_commands;
