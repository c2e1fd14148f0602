-- +goose Up
-- API keys, of which only a hash is stored.
CREATE TABLE api_keys (
    key_id       text PRIMARY KEY,
    owner_id     text        NOT NULL,               -- the owner whose jobs it sees; '': a key of the installation
    name         text        NOT NULL,
    roles        text[]      NOT NULL CHECK (roles <@ '{submit,read,operate,admin}' AND cardinality(roles) > 0),
    secret_hash  bytea       NOT NULL CHECK (octet_length(secret_hash) = 32), -- SHA-256 of the whole key
    created_at   timestamptz NOT NULL DEFAULT now(),
    created_by   text        NOT NULL,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz                          -- to the minute
);
CREATE INDEX api_keys_of ON api_keys (owner_id, key_id);

-- The audit log: which actor did what to what, when and from where. Entries are never changed; projection deletes old
-- ones.
CREATE TABLE audit_log (
    audit_id    bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL DEFAULT now(),
    owner_id    text        NOT NULL,                 -- the owner of what was changed
    actor       text        NOT NULL,                 -- key:<id> or oidc:<subject>
    action      text        NOT NULL,                 -- job.submit, job.cancel, key.create …
    resource    text        NOT NULL DEFAULT '',      -- if it is not a job: schedule/nightly, key/4f7q…
    job_ids     uuid[]      NOT NULL DEFAULT '{}',
    remote_addr text        NOT NULL,
    user_agent  text        NOT NULL,
    trace_id    uuid        NOT NULL,
    details     json
);
CREATE INDEX audit_log_of ON audit_log (owner_id, audit_id);
CREATE INDEX audit_log_jobs ON audit_log USING gin (job_ids) WHERE job_ids <> '{}';

-- The same (source, id) from two owners' keys are two events. Without authentication no event has an owner: then the
-- same (source, id) is one event, whatever the body contains, even another ownerId.
ALTER TABLE jobs ADD COLUMN event_owner text NOT NULL DEFAULT '';
DROP INDEX jobs_event;
CREATE UNIQUE INDEX jobs_event ON jobs (event_owner, event_source, event_id) WHERE event_id IS NOT NULL;

-- An owner's jobs, by shelf; completed ones have a shelf here, too. Jobs without an owner have no entry: the index
-- keeps an owner's list from walking past the jobs of others, and without owners there are no others.
CREATE INDEX jobs_owned ON jobs (owner_id, coalesce(shelf_of(status, version), 10::smallint), job_id) WHERE owner_id <> '';
CREATE INDEX jobs_of_owners_key ON jobs (owner_id, ordering_key, job_id) WHERE ordering_key IS NOT NULL AND owner_id <> '';

-- Null: the row is about the jobs of all owners, and no single owner sees it.
ALTER TABLE operations
    ADD COLUMN owner_id text,
    DROP CONSTRAINT operations_idempotency_key_key;
CREATE UNIQUE INDEX operations_idempotency ON operations (owner_id, idempotency_key) NULLS NOT DISTINCT
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX operations_owned ON operations (owner_id, operation_id) WHERE owner_id IS NOT NULL;

CREATE INDEX deliveries_owned ON deliveries (owner_id, status, job_id, version) WHERE owner_id <> '';

-- Each owner has its own numbers, in addition to those of all owners, so that a read of one does not walk through the
-- others.
ALTER TABLE tally_entries ADD COLUMN owner_id text NOT NULL DEFAULT '';
ALTER TABLE tallies
    ADD COLUMN everyone boolean NOT NULL DEFAULT true, -- all owners' together
    ADD COLUMN owner_id text    NOT NULL DEFAULT '',
    ADD CHECK (NOT everyone OR owner_id = ''),
    DROP CONSTRAINT tallies_pkey,
    ADD PRIMARY KEY (everyone, owner_id, grain, at, queue, job_type, what);
ALTER TABLE tallies ALTER COLUMN everyone DROP DEFAULT, ALTER COLUMN owner_id DROP DEFAULT;
CREATE INDEX tallies_aged ON tallies (grain, at);
-- The number of an owner's ended jobs. The owners of the existing entries are unknown, so they count as entries without
-- an owner, and their numbers are subtracted here.
INSERT INTO tallies (everyone, owner_id, grain, at, queue, job_type, what, n, kept)
SELECT false, owner_id, 'ever', 'epoch', queue, job_type, what, 0, sum(kept) FROM (
    SELECT owner_id, queue, job_type, status, 1 FROM jobs WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED')
    UNION ALL
    SELECT '', queue, job_type, what, -kept FROM tally_entries
) AS counted (owner_id, queue, job_type, what, kept)
GROUP BY owner_id, queue, job_type, what HAVING sum(kept) <> 0;

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION tally_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tally_entries (owner_id, queue, job_type, what, n, kept)
    SELECT owner_id, queue, job_type, status, 0, -count(*) FROM gone
    WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED') GROUP BY owner_id, queue, job_type, status;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- Each owner's part of job_counts. An owner without a row has no unfinished job.
CREATE TABLE owner_job_counts (
    owner_id text PRIMARY KEY,
    counts   text NOT NULL
);
DELETE FROM job_counts; -- they will be counted again

-- The part that the installation has set, which an owner may only tighten.
ALTER TABLE controls
    ADD COLUMN least_paused           boolean NOT NULL DEFAULT false,
    ADD COLUMN most_running           integer,
    ADD COLUMN most_starts_per_second double precision;

-- +goose Down
ALTER TABLE controls DROP COLUMN least_paused, DROP COLUMN most_running, DROP COLUMN most_starts_per_second;
DROP TABLE owner_job_counts;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION tally_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tally_entries (queue, job_type, what, n, kept)
    SELECT queue, job_type, status, 0, -count(*) FROM gone
    WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED') GROUP BY queue, job_type, status;
    RETURN NULL;
END $$;
-- +goose StatementEnd
DELETE FROM tallies WHERE NOT everyone;
DROP INDEX tallies_aged;
ALTER TABLE tallies
    DROP COLUMN everyone, -- and the key with it
    DROP COLUMN owner_id,
    ADD PRIMARY KEY (grain, at, queue, job_type, what);
ALTER TABLE tally_entries DROP COLUMN owner_id;
DROP INDEX deliveries_owned, operations_owned, operations_idempotency;
ALTER TABLE operations DROP COLUMN owner_id, ADD UNIQUE (idempotency_key);
DROP INDEX jobs_of_owners_key, jobs_owned, jobs_event;
ALTER TABLE jobs DROP COLUMN event_owner;
CREATE UNIQUE INDEX jobs_event ON jobs (event_source, event_id) WHERE event_id IS NOT NULL;
DROP TABLE audit_log, api_keys;
