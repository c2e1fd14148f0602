-- +goose Up

-- Those of due suspects, the earliest first, for which their queues have no place: see suspects_free.
-- +goose StatementBegin
CREATE FUNCTION suspects_without_place(ids uuid[], queues text[], silent_after interval) RETURNS SETOF uuid LANGUAGE sql STABLE STRICT
BEGIN ATOMIC
    WITH suspects AS (
        SELECT job_id, queue, row_number() OVER (PARTITION BY queue ORDER BY nth) AS place
        FROM unnest(ids, queues) WITH ORDINALITY AS suspect (job_id, queue, nth)
    ), free AS MATERIALIZED (
        SELECT asked.queue, suspects_free(asked.queue, silent_after) AS places
        FROM (SELECT DISTINCT queue FROM suspects) AS asked
    )
    SELECT suspects.job_id FROM suspects JOIN free ON free.queue = suspects.queue WHERE suspects.place > free.places;
END;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION suspects_without_place;
