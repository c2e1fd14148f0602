-- +goose Up
-- Jobs that a newer tick of their schedule must cancel (overlap: cancel), but that had another unanswered command or
-- callback. cron tries again until they are cancelled or have ended. There are only few rows at any time, each for a
-- short time.
CREATE TABLE schedule_cancels (
    job_id uuid PRIMARY KEY
);

-- +goose Down
DROP TABLE schedule_cancels;
