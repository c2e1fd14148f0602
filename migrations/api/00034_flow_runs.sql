-- +goose Up
-- Which run of a flow this is, counted from 1, and how the earlier ones stood when the next began; null: there were none.
ALTER TABLE batches ADD COLUMN IF NOT EXISTS run integer NOT NULL DEFAULT 1, ADD COLUMN IF NOT EXISTS earlier_runs json;

-- The jobs of a flow that a later run has replaced by new ones, without the jobs of elements: these belong to their
-- fan-out. Replaced jobs stay as they ended, and count no more. The rows stay until the flow is deleted, because a
-- fan-out can be deleted before the jobs of its elements.
CREATE TABLE replaced_jobs (
    batch_id uuid NOT NULL,
    job_id   uuid NOT NULL,
    PRIMARY KEY (batch_id, job_id)
);

-- +goose Down
DROP TABLE replaced_jobs;
ALTER TABLE batches DROP COLUMN earlier_runs, DROP COLUMN run;
