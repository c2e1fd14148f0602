-- +goose Up
-- The error codes of the jobs that failed for good: an entry has a code for each job, and a sum has the number of jobs
-- for each code. A projection of the previous version ignores them.
ALTER TABLE tally_entries ADD COLUMN error_codes text[] NOT NULL DEFAULT '{}';
ALTER TABLE tallies ADD COLUMN error_codes json NOT NULL DEFAULT '{}';

-- +goose Down
ALTER TABLE tallies DROP COLUMN error_codes;
ALTER TABLE tally_entries DROP COLUMN error_codes;
