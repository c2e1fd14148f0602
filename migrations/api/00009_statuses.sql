-- +goose Up

-- JobsApplyStatus applies the statuses of many jobs. What follows for some of them only, these functions do, from the rows
-- as the statement has left them, so that a plain job does not pay for it. They have the rights of their owner.

-- How a job had ended before a status, for its column ended_as; null: it had not ended. The state, if it ends again or no
-- longer, and after a space its error code, if it had failed otherwise than it fails now.
CREATE FUNCTION end_before(
    old_status text, old_attempt integer, old_code text, new_status text, new_attempt integer, new_code text
) RETURNS text LANGUAGE sql IMMUTABLE
RETURN CASE WHEN old_status IN ('COMPLETED', 'FAILED', 'CANCELLED') THEN
    CASE WHEN old_status <> new_status OR old_attempt <> new_attempt THEN old_status ELSE '' END
    || CASE
        WHEN old_status = 'FAILED' AND (new_status <> 'FAILED' OR old_attempt <> new_attempt OR coalesce(old_code, '') <> new_code)
        THEN ' ' || coalesce(old_code, '') ELSE ''
    END
END;

-- Enters jobs that have failed for the statistics, once for each failure and not later than now, as the scheduler's clock
-- may be ahead.
-- +goose StatementBegin
CREATE FUNCTION enter_failures(ids uuid[]) RETURNS bigint LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    entered bigint;
BEGIN
    INSERT INTO public.failure_entries (owner_id, job_type, error_code, kept, failed, first_at, last_at, last_id)
    SELECT owner_id, job_type, coalesce(error_code, ''), count(*), count(*), least(min(updated_at), now()),
        least(max(updated_at), now()), (array_agg(job_id ORDER BY updated_at DESC))[1]
    FROM public.jobs WHERE job_id = ANY (ids) AND ended_as IS DISTINCT FROM ''
    GROUP BY owner_id, job_type, coalesce(error_code, ''), date_trunc('hour', updated_at);
    GET DIAGNOSTICS entered = ROW_COUNT;
    RETURN entered;
END $$;
-- +goose StatementEnd

-- Enters for the statistics that jobs have not ended any more as they had: see end_before.
-- +goose StatementBegin
CREATE FUNCTION enter_former_ends(ids uuid[]) RETURNS bigint LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    entered bigint;
BEGIN
    INSERT INTO public.tally_entries (owner_id, queue, job_type, what, n, kept)
    SELECT owner_id, queue, job_type, split_part(ended_as, ' ', 1), 0, -count(*)
    FROM public.jobs WHERE job_id = ANY (ids) AND split_part(ended_as, ' ', 1) <> ''
    GROUP BY owner_id, queue, job_type, split_part(ended_as, ' ', 1);
    INSERT INTO public.failure_entries (owner_id, job_type, error_code, kept, failed)
    SELECT owner_id, job_type, substr(ended_as, position(' ' IN ended_as) + 1), -count(*), 0
    FROM public.jobs WHERE job_id = ANY (ids) AND ended_as LIKE '% %'
    GROUP BY owner_id, job_type, substr(ended_as, position(' ' IN ended_as) + 1);
    GET DIAGNOSTICS entered = ROW_COUNT;
    RETURN entered;
END $$;
-- +goose StatementEnd

-- Stores the ends of jobs that have a callbackUrl, with all that their deliveries contain.
-- +goose StatementBegin
CREATE FUNCTION enter_deliveries(ids uuid[]) RETURNS bigint LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    entered bigint;
BEGIN
    INSERT INTO public.deliveries (job_id, version, owner_id, job_status, url, job, snapshot)
    SELECT job_id, version, owner_id, status, callback_url,
        json_build_object(
            'jobId', job_id, 'version', version, 'ownerId', owner_id, 'callbackUrl', callback_url, 'jobType', job_type,
            'queue', queue, 'status', status, 'spec', spec, 'attempt', attempt, 'retryCount', retry_count, 'runAt', run_at,
            'tags', tags, 'traceId', trace_id, 'createdAt', created_at, 'updatedAt', updated_at, 'expiresAt', expires_at,
            'orderingKey', ordering_key, 'fairnessKey', fairness_key, 'batchId', batch_id
        ), snapshot
    FROM public.jobs WHERE job_id = ANY (ids)
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS entered = ROW_COUNT;
    RETURN entered;
END $$;
-- +goose StatementEnd

-- Updates the waits of jobs that have ended or are SCHEDULED, and the waits of parents for those that have ended. It locks
-- them in the order in which all statements lock those of a job, and returns how many are to be looked at.
-- +goose StatementBegin
CREATE FUNCTION update_waits(ids uuid[]) RETURNS bigint LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    due bigint;
BEGIN
    WITH changed AS (
        SELECT job_id, job_type, status, snapshot, waits, event_id AS call,
            CASE WHEN starts_with(event_source, '/jobweaver/child/') AND status IN ('COMPLETED', 'FAILED', 'CANCELLED')
                 THEN substr(event_source, 18)::uuid END AS parent_id
        FROM public.jobs WHERE job_id = ANY (ids)
    ), locked AS (
        SELECT waits.job_id, waits.name FROM public.waits
        WHERE waits.job_id = ANY (ARRAY(
                SELECT parent_id FROM changed WHERE parent_id IS NOT NULL UNION ALL SELECT job_id FROM changed WHERE changed.waits
            )) AND EXISTS (
                SELECT FROM changed WHERE changed.waits AND changed.job_id = waits.job_id
                    OR changed.parent_id = waits.job_id AND changed.call = waits.run || ':' || waits.name
            )
        ORDER BY waits.job_id, waits.name
        FOR UPDATE
    ), answered AS ( -- the wait of a parent for its child, which may be deleted before the parent asks
        UPDATE public.waits SET child_end = changed.snapshot, done_at = now(), look_at = now(),
            child = json_build_object('jobId', changed.job_id, 'jobType', changed.job_type, 'status', changed.status),
            status = CASE waits.status WHEN 'CLOSED' THEN 'CLOSED' ELSE 'DONE' END
        FROM changed
        WHERE (SELECT count(*) FROM locked) > 0 AND waits.job_id = ANY (ARRAY[changed.parent_id])
            AND changed.call = waits.run || ':' || waits.name
        RETURNING waits.job_id, waits.name
    ), interrupted AS ( -- waits that are done meanwhile, and all of a job that has ended: what it has is left
        UPDATE public.waits SET look_at = now(), status = CASE
            WHEN changed.status = 'SCHEDULED' OR waits.event_type IS NOT NULL AND waits.status <> 'OPEN'
                OR waits.child ->> 'status' = 'COMPLETED' THEN waits.status ELSE 'CLOSED' END
        FROM changed
        WHERE (SELECT count(*) FROM locked) > 0 AND changed.waits AND waits.job_id = ANY (ARRAY[changed.job_id])
            AND (changed.status <> 'SCHEDULED' OR waits.status <> 'OPEN' AND waits.look_at IS NOT NULL)
            AND NOT EXISTS (SELECT FROM answered WHERE answered.job_id = waits.job_id AND answered.name = waits.name)
        RETURNING waits.job_id
    )
    SELECT (SELECT count(*) FROM answered) + (SELECT count(*) FROM interrupted) INTO due;
    RETURN due;
END $$;
-- +goose StatementEnd

-- A deletion corrects the statistics. The function had the rights of its caller.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION tally_deleted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO public.tally_entries (owner_id, queue, job_type, what, n, kept)
    SELECT owner_id, queue, job_type, status, 0, -count(*) FROM gone
    WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED') GROUP BY owner_id, queue, job_type, status;
    INSERT INTO public.failure_entries (owner_id, job_type, error_code, kept, failed)
    SELECT owner_id, job_type, coalesce(error_code, ''), -count(*), 0 FROM gone
    WHERE status = 'FAILED' GROUP BY owner_id, job_type, coalesce(error_code, '');
    RETURN NULL;
END $$;
-- +goose StatementEnd

REVOKE EXECUTE ON FUNCTION enter_failures, enter_former_ends, enter_deliveries, update_waits FROM PUBLIC;

-- +goose Down
DROP FUNCTION end_before, enter_failures, enter_former_ends, enter_deliveries, update_waits;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION tally_deleted() RETURNS trigger LANGUAGE plpgsql SECURITY INVOKER AS $$
BEGIN
    INSERT INTO tally_entries (owner_id, queue, job_type, what, n, kept)
    SELECT owner_id, queue, job_type, status, 0, -count(*) FROM gone
    WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED') GROUP BY owner_id, queue, job_type, status;
    INSERT INTO failure_entries (owner_id, job_type, error_code, kept, failed)
    SELECT owner_id, job_type, coalesce(error_code, ''), -count(*), 0 FROM gone
    WHERE status = 'FAILED' GROUP BY owner_id, job_type, coalesce(error_code, '');
    RETURN NULL;
END $$;
-- +goose StatementEnd
