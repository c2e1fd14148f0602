-- +goose Up
-- A fan-out has a place in the order of its key, and up to 10,000 jobs of elements come right before it: before the first
-- number, too, and no job has the number 0.
ALTER SEQUENCE order_numbers INCREMENT BY 16384;
SELECT nextval('order_numbers');

-- +goose Down
ALTER SEQUENCE order_numbers INCREMENT BY 1;
