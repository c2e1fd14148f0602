-- +goose Up

-- A history with n more entries, at most a hundred, which are joined by commas: the last hundred of all. PostgreSQL puts
-- the expression in place of the call.
CREATE FUNCTION history_with(history text, moves integer, entries text, n integer) RETURNS text LANGUAGE sql IMMUTABLE
RETURN CASE WHEN moves + n <= 100 THEN history || ','
            WHEN n < 100 THEN last_moves(history, 100 - n) || ','
            ELSE '' END || entries;

-- +goose Down
DROP FUNCTION history_with;
