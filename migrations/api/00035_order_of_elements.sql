-- +goose Up
-- A fan-out has a place in the order of its key, and up to 10,000 jobs of elements come right before it.
ALTER SEQUENCE order_numbers INCREMENT BY 16384;

-- +goose Down
ALTER SEQUENCE order_numbers INCREMENT BY 1;
