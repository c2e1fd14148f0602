-- +goose Up
-- What jobweaver serve makes once for all processes of an installation: the secrets that sign calls and callbacks. Only
-- the owner of the database reads it.
CREATE TABLE installation_secrets (
    name text PRIMARY KEY,
    secret text NOT NULL
);
