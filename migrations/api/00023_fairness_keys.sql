-- +goose Up
-- Jobs of different fairness keys take turns; null: the owner is the key.
ALTER TABLE jobs ADD COLUMN fairness_key text;

-- Controls of fairness keys. Only they have a weight; null: 1.
ALTER TABLE controls
    DROP CONSTRAINT controls_kind_check,
    ADD CONSTRAINT controls_kind_check CHECK (kind IN ('queue', 'type', 'owner', 'fairnessKey')),
    ADD COLUMN weight smallint CHECK (weight IS NULL OR kind = 'fairnessKey' AND weight BETWEEN 2 AND 100);

-- +goose Down
DELETE FROM controls WHERE kind = 'fairnessKey';
ALTER TABLE controls
    DROP COLUMN weight,
    DROP CONSTRAINT controls_kind_check,
    ADD CONSTRAINT controls_kind_check CHECK (kind IN ('queue', 'type', 'owner'));
ALTER TABLE jobs DROP COLUMN fairness_key;
