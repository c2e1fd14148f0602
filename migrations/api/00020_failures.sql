-- +goose Up
-- The error codes of the jobs that failed for good: of an entry one of each job, of a tally how many jobs failed with each.
-- A projection of the version before leaves them out and takes nothing else away.
ALTER TABLE tally_entries ADD COLUMN error_codes text[] NOT NULL DEFAULT '{}';
ALTER TABLE tallies ADD COLUMN error_codes json NOT NULL DEFAULT '{}';

-- +goose Down
ALTER TABLE tallies DROP COLUMN error_codes;
ALTER TABLE tally_entries DROP COLUMN error_codes;
