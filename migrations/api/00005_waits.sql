-- +goose Up

-- Events that handlers may wait for, or have waited for.
CREATE TABLE events (
    event_number uuid        PRIMARY KEY,
    owner_id     text        NOT NULL,
    source       text        NOT NULL,
    event_id     text        NOT NULL,
    event_type   text        NOT NULL,
    event        json        NOT NULL,               -- with its data, sealed
    keys         bigint[]    NOT NULL,               -- hashes of what a wait can name
    received_at  timestamptz NOT NULL DEFAULT now(),
    UNIQUE (owner_id, source, event_id)
);
CREATE INDEX events_of_type ON events (owner_id, event_type, event_number);
CREATE INDEX events_by_key ON events USING gin (keys);

-- What the handler of a job waits for: an event, or the end of a job that it has called, its child. The job is
-- SCHEDULED meanwhile, and cron reschedules it once a wait is done.
CREATE TABLE waits (
    job_id       uuid        NOT NULL,
    name         text        NOT NULL,
    owner_id     text        NOT NULL,               -- of the job
    status       text        NOT NULL DEFAULT 'OPEN' CHECK (status IN ('OPEN', 'DONE', 'TIMED_OUT', 'CLOSED')), -- CLOSED: its job ended first
    attempt      integer     NOT NULL,               -- of the job, that asked last
    group_name   text,                               -- the waits of a group wake their job together; null: it wakes its job alone
    created_at   timestamptz NOT NULL DEFAULT now(),
    until_at     timestamptz,                        -- null: for as long as it takes
    done_at      timestamptz,
    look_at      timestamptz,                        -- when cron is to look at it; null: never
    event_type   text,                               -- null: it waits for a child
    match        text,                               -- what the event's members must be; sealed
    keys         bigint[],                           -- hashes of the same
    first_key    bigint,                             -- one of keys
    event_number uuid,                               -- the event that it got
    run          integer     NOT NULL DEFAULT 0,     -- the number of its child: with the name it identifies the child
    child        json,                               -- jobId, jobType and status of the child when it last ended; null: it never has
    child_end    text,                               -- and its snapshot, for a handler that asks after the child was deleted
    PRIMARY KEY (job_id, name),
    CONSTRAINT waits_possible CHECK ((event_type IS NULL) = (first_key IS NULL) AND (event_type IS NOT NULL OR run > 0))
);
CREATE INDEX waits_to_look_at ON waits (look_at) WHERE look_at IS NOT NULL;
CREATE INDEX waits_open ON waits (owner_id, event_type, first_key) WHERE status = 'OPEN' AND event_type IS NOT NULL;
CREATE INDEX waits_of_event ON waits (event_number) WHERE event_number IS NOT NULL;

-- What the steps of a job's handler returned. Later attempts get these results and do not run the steps again.
CREATE TABLE steps (
    job_id   uuid        NOT NULL,
    name     text        NOT NULL,
    attempt  integer     NOT NULL,                   -- that saved it
    saved_at timestamptz NOT NULL DEFAULT now(),
    until_at timestamptz,                            -- of a sleep: when it is over
    took_ms  bigint,                                 -- null: the worker has not measured it
    bytes    integer     NOT NULL,                   -- of the result before it was sealed
    result   text        NOT NULL,                   -- JSON, sealed
    PRIMARY KEY (job_id, name)
);

-- Whether the job has rows in waits or steps, so that the statuses and the reads of other jobs need not look.
ALTER TABLE jobs ADD COLUMN waits boolean;

-- Log lines may arrive later: LogsExpire deletes those. Ends that are not delivered yet stay. A batch that has not ended goes
-- on counting the jobs.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION delete_with_jobs() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ids uuid[] := ARRAY(SELECT job_id FROM gone ORDER BY job_id);
BEGIN
    DELETE FROM public.commands WHERE job_id = ANY (ids);
    DELETE FROM public.callbacks WHERE job_id = ANY (ids);
    DELETE FROM public.merged_submits WHERE job_id = ANY (ids);
    DELETE FROM public.waits WHERE job_id = ANY (ids);
    DELETE FROM public.steps WHERE job_id = ANY (ids);
    DELETE FROM public.attempt_logs WHERE job_id = ANY (ids);
    DELETE FROM public.deliveries
    WHERE job_id = ANY (ARRAY(SELECT job_id FROM gone WHERE callback_url IS NOT NULL)) AND status <> 'PENDING';
    INSERT INTO public.batch_deletions (batch_id, status, jobs)
    SELECT gone.batch_id, CASE WHEN gone.status IN ('COMPLETED', 'FAILED') THEN gone.status ELSE 'CANCELLED' END, count(*)
    FROM gone JOIN public.batches ON batches.batch_id = ANY (ARRAY[gone.batch_id])
    WHERE batches.finished_at IS NULL AND NOT EXISTS ( -- a later run has replaced it
        SELECT FROM public.replaced_jobs
        WHERE replaced_jobs.batch_id = gone.batch_id AND replaced_jobs.job_id = coalesce(gone.fan_out_id, gone.job_id) OFFSET 0
    )
    GROUP BY 1, 2;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION delete_with_jobs() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ids uuid[] := ARRAY(SELECT job_id FROM gone ORDER BY job_id);
BEGIN
    DELETE FROM public.commands WHERE job_id = ANY (ids);
    DELETE FROM public.callbacks WHERE job_id = ANY (ids);
    DELETE FROM public.merged_submits WHERE job_id = ANY (ids);
    RETURN NULL;
END $$;
-- +goose StatementEnd
ALTER TABLE jobs DROP COLUMN waits;
DROP TABLE steps, waits, events;
