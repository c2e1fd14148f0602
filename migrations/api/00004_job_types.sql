-- +goose Up

-- The job types that workers have run or described. Jobs of these are accepted as those of JOB_TYPES are.
CREATE TABLE job_types (
    owner_id   text NOT NULL, -- empty: its workers run the jobs of all owners
    name       text NOT NULL,
    definition json,          -- as the worker that started last sent it; null: none has sent one
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (owner_id, name)
);

-- The job type whose workers define the schedule in code; null: a request made it.
ALTER TABLE schedules ADD COLUMN defined_by text;

-- +goose Down
ALTER TABLE schedules DROP COLUMN defined_by;
DROP TABLE job_types;
