-- +goose Up
-- The submit policies of a job's request, in the form of the API; null: it has none. A policy looks at the earlier jobs
-- with its key, under the lock of the key. So no other row has to be kept, and none to be deleted.
ALTER TABLE jobs ADD COLUMN policies json;

CREATE INDEX jobs_unique_active ON jobs (owner_id, (policies -> 'unique' ->> 'key'))
    WHERE policies -> 'unique' IS NOT NULL AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');
CREATE INDEX jobs_unique ON jobs (owner_id, (policies -> 'unique' ->> 'key'), created_at)
    WHERE policies -> 'unique' IS NOT NULL;
CREATE INDEX jobs_throttled ON jobs (owner_id, (policies -> 'throttle' ->> 'key'), (coalesce(run_at, created_at)))
    WHERE policies -> 'throttle' IS NOT NULL;

-- +goose Down
ALTER TABLE jobs DROP COLUMN policies;
