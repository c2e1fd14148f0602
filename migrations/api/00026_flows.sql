-- +goose Up
-- How each of the jobs in after_ids has to end: completed, ended or failed; null: all completed, or ended for a job that
-- runs anyway.
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS after_conditions text[];

-- The jobs whose outputs the payload refers to, each with the name that it has there; null: none.
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS inputs json;

-- A flow is a batch whose jobs name each other: its jobs by their names, and what each of them waits for; null: no flow.
ALTER TABLE batches ADD COLUMN IF NOT EXISTS graph json;

-- +goose Down
ALTER TABLE batches DROP COLUMN graph;
ALTER TABLE jobs DROP COLUMN inputs;
ALTER TABLE jobs DROP COLUMN after_conditions;
