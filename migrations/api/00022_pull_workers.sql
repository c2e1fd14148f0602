-- +goose Up
-- Keys of pull workers: the role work, and the job types and queues whose attempts such a key may claim; '{}': any.
ALTER TABLE api_keys
    DROP CONSTRAINT api_keys_roles_check,
    ADD CONSTRAINT api_keys_roles_check
        CHECK (roles <@ '{submit,read,operate,work,admin}' AND cardinality(roles) > 0),
    ADD COLUMN work_types text[] NOT NULL DEFAULT '{}',
    ADD COLUMN work_queues text[] NOT NULL DEFAULT '{}';

-- +goose Down
-- A key that has only the role work would have no role left, so it is deleted.
DELETE FROM api_keys WHERE roles = '{work}';
UPDATE api_keys SET roles = array_remove(roles, 'work') WHERE 'work' = ANY (roles);
ALTER TABLE api_keys
    DROP COLUMN work_queues, DROP COLUMN work_types,
    DROP CONSTRAINT api_keys_roles_check,
    ADD CONSTRAINT api_keys_roles_check CHECK (roles <@ '{submit,read,operate,admin}' AND cardinality(roles) > 0);
