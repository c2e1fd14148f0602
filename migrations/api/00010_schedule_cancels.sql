-- +goose Up
-- Jobs that a newer tick of their schedule is to cancel (overlap: cancel), but of which another command or a callback was
-- not answered yet. cron tries again until they are cancelled or have ended. Few, for moments.
CREATE TABLE schedule_cancels (
    job_id uuid PRIMARY KEY
);

-- +goose Down
DROP TABLE schedule_cancels;
