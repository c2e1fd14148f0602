-- +goose Up

-- How many more suspects of a queue may be out. A suspect is a job that was lost at least twice in a row. A queue has at
-- most as many suspects out as it has workers, so that a job that kills its worker shares it with no other suspect and
-- is lost alone. A suspect that has run for ten minutes no longer counts. Nor does one that has waited for a minute, or
-- that no worker has started within ten although the queue has workers: a pause, or a type that no pull worker takes,
-- may hold it back for days, and it must not hold back the others.
CREATE FUNCTION suspects_free(of_queue text, silent_after interval) RETURNS bigint LANGUAGE sql STABLE
RETURN (
    WITH live AS (
        SELECT count(*) AS n FROM workers w
        WHERE w.seen_at > now() - silent_after AND (w.slots > 0 OR w.rooms IS NOT NULL)
          AND json_array_length(w.partitions -> of_queue) > 0
    )
    SELECT greatest(live.n, 1) - (
        SELECT count(*) FROM jobs j
        WHERE j.queue = of_queue AND j.lost_count >= 2 AND j.status IN ('PENDING', 'QUEUED', 'RUNNING')
          AND (j.status <> 'RUNNING' OR j.started_at > now() - interval '10 min')
          AND (j.status <> 'QUEUED' OR j.updated_at > now() - interval '10 min' OR live.n = 0)
          AND (j.status <> 'PENDING' OR j.updated_at > now() - interval '1 min')
    )
    FROM live
);

-- +goose Down
DROP FUNCTION suspects_free;
