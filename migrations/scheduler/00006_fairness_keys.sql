-- +goose NO TRANSACTION
-- +goose Up
-- The key by which a job shares its queue: the one in its request, or its owner. Byte order, so that Go and SQL agree
-- on which key comes next.
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS fairness_key text COLLATE "C" NOT NULL DEFAULT '';
DROP INDEX CONCURRENTLY IF EXISTS jobs_by_key;
CREATE INDEX CONCURRENTLY jobs_by_key ON jobs (queue, coalesce(lane, ''), fairness_key, rank, job_id)
    WHERE status = 'PENDING' AND blocked_by IS NULL;

ALTER TABLE controls ADD COLUMN IF NOT EXISTS weight smallint CHECK (weight BETWEEN 1 AND 100); -- of a fairness key; null: 1
ALTER TABLE controls DROP CONSTRAINT IF EXISTS controls_kind_check;
ALTER TABLE controls ADD CONSTRAINT controls_kind_check CHECK (kind IN ('queue', 'type', 'owner', 'fairnessKey'));

-- +goose Down
DELETE FROM controls WHERE kind = 'fairnessKey' OR name = '*';
ALTER TABLE controls DROP CONSTRAINT controls_kind_check;
ALTER TABLE controls ADD CONSTRAINT controls_kind_check CHECK (kind IN ('queue', 'type', 'owner'));
ALTER TABLE controls DROP COLUMN weight;
DROP INDEX jobs_by_key;
ALTER TABLE jobs DROP COLUMN fairness_key;
