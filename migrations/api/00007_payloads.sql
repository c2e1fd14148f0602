-- +goose Up

-- Whether the payload of a job has a value at a path: a text as it is, a number of the same size, or true, false or null.
-- It is all that bulk learns of a payload, which it may not read. A sealed payload has no paths.
-- +goose StatementBegin
CREATE FUNCTION payload_has(of_job uuid, path text[], wanted text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((
        SELECT CASE json_typeof(value)
            WHEN 'string' THEN value #>> '{}' = wanted
            WHEN 'number' THEN value::text = wanted OR CASE
                WHEN wanted ~ '^-?[0-9]+([.][0-9]+)?([eE][-+]?[0-9]{1,3})?$' THEN value::text::numeric = wanted::numeric
            END
            ELSE value::text = wanted
        END
        FROM (SELECT payload #> path AS value FROM public.jobs WHERE job_id = of_job OFFSET 0) AS found
    ), false)
$$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION payload_has FROM PUBLIC;

-- +goose Down
DROP FUNCTION payload_has;
