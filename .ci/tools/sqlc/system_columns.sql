-- sqlc does not know the system columns of a table. Only sqlc reads this file: it follows the migrations of the scheduler.
ALTER TABLE jobs ADD COLUMN ctid tid;
