-- +goose Up
-- The shelf of a job in its index; a completed job has none. 0 and 1: no status has come from the scheduler; 2 to 4: it
-- waits; 5 to 7: it is in flight; 8 and 9: it is FAILED or CANCELLED.
CREATE FUNCTION shelf_of(status text, version bigint) RETURNS smallint LANGUAGE sql IMMUTABLE
    RETURN CASE status
        WHEN 'COMPLETED' THEN NULL
        WHEN 'PENDING'   THEN CASE version WHEN 0 THEN 0 ELSE 2 END
        WHEN 'SCHEDULED' THEN CASE version WHEN 0 THEN 1 ELSE 3 END
        WHEN 'RETRYING'  THEN 4
        WHEN 'QUEUED'    THEN 5
        WHEN 'RUNNING'   THEN 6
        WHEN 'WAITING'   THEN 7
        WHEN 'FAILED'    THEN 8
        WHEN 'CANCELLED' THEN 9
    END;

-- The jobs that clients requested, with the scheduler's latest status of each. Go checks names and sizes in requests, and
-- states in events: PostgreSQL parses the text of a CHECK anew in each statement that writes a row, and a check of all of
-- it took 117 of the 392 µs of a statement that accepts one job or stores one status. The short one guards what a
-- statement could tear apart, and costs nothing measurable.
CREATE TABLE jobs (
    job_id              uuid PRIMARY KEY,                 -- UUIDv7: the key grows at its right edge and orders by age
    owner_id            text        NOT NULL DEFAULT '',
    job_type            text        NOT NULL,
    queue               text        NOT NULL,
    payload             json        NOT NULL,
    spec                json        NOT NULL,             -- how it is to run; jobevent.Spec has its members
    run_at              timestamptz,
    tags                text[]      NOT NULL DEFAULT '{}',
    trace_id            uuid        NOT NULL,
    created_at          timestamptz NOT NULL DEFAULT now(),
    idempotency_key     text,
    request_hash        bytea,                            -- of the canonical request, if there is a key
    event_source        text,                             -- of the CloudEvent that submitted it
    event_id            text,
    command_seq         integer     NOT NULL DEFAULT 0,
    cancel_requested_at timestamptz,
    -- The following columns have the scheduler's status. Version 0: no status has arrived yet.
    status              text        NOT NULL,
    version             bigint      NOT NULL DEFAULT 0,
    attempt             integer     NOT NULL DEFAULT 0,
    retry_count         integer     NOT NULL DEFAULT 0,
    updated_at          timestamptz NOT NULL DEFAULT now(),
    snapshot            text,                             -- data of the job-status event of this version. No json: it was checked before
    progress            json,                             -- of the running attempt, from heartbeats
    -- The following columns have the rest of the request, and what the API decided about it.
    expires_at          timestamptz,                      -- cancelled if it has not started by then
    ordering_key        text,                             -- an owner's jobs with the same key run one after another, by order_number
    order_number        bigint,
    order_after         uuid,                             -- the last job of the key that had not ended when this one was accepted
    after_ids           uuid[],                           -- the jobs that must end first; null: none
    runs_anyway         boolean,                          -- whether it runs even if one of those did not complete; null: no
    -- How the job had ended when the latest status arrived; null: it had not ended; '': as that status shows it.
    ended_as            text,
    callback_url        text,                             -- where its end is delivered; null: nowhere
    -- The same (source, id) from two owners' keys are two events. Without authentication no event has an owner: then the
    -- same (source, id) is one event, whatever the body contains, even another ownerId.
    event_owner         text        NOT NULL DEFAULT '',
    error_code          text,                             -- of the last failure that the scheduler has reported; null: none
    run_again_of        uuid,                             -- the job that this one repeats; null: none
    fairness_key        text,                             -- jobs of different fairness keys take turns; null: the owner is the key
    batch_id            uuid,
    -- The submit policies of the request, in the form of the API; null: it has none. A policy looks at the earlier jobs
    -- with its key, under the lock of the key. So no other row has to be kept, and none to be deleted.
    policies            json,
    -- How each of the jobs in after_ids has to end: completed, ended or failed; null: all completed, or ended for a job
    -- that runs anyway.
    after_conditions    text[],
    inputs              json,                             -- the jobs whose outputs the payload refers to, by their names there; null: none
    -- A debounced job is held at first: the scheduler does not know it, and further requests with its key change it. held
    -- is true until run_at has passed, false once a command makes the job ready earlier, and null for all other jobs.
    held                boolean,
    released_at         timestamptz,
    -- A fan-out is a job of a flow that becomes a job for each element of an array: for_each names the array, and elements
    -- how many there were, once these jobs exist. fan_out_id and element are of these jobs. Null for other jobs.
    for_each            json,
    elements            integer,
    fan_out_id          uuid,
    element             integer,
    -- The attributes of the CloudEvent that submitted a job, an object as in CloudEvents' JSON format without the data.
    -- Null: none did. A job that runs again has the event of the first one, but neither its event_source nor its event_id,
    -- by which a repeated event is recognised.
    event               json,
    CONSTRAINT jobs_pairs CHECK (
        (version = 0) = (snapshot IS NULL)
        AND (idempotency_key IS NULL) = (request_hash IS NULL)
        AND (event_source IS NULL) = (event_id IS NULL))
) WITH (fillfactor = 100); -- every update of a job changes its indexes, so free space beside it is useless

CREATE UNIQUE INDEX jobs_idempotency ON jobs (owner_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX jobs_event ON jobs (event_owner, event_source, event_id) WHERE event_id IS NOT NULL;
CREATE INDEX jobs_shelved ON jobs (shelf_of(status, version), job_id) WHERE shelf_of(status, version) IS NOT NULL;
-- An owner's jobs, by shelf; completed ones have a shelf here, too. Jobs without an owner have no entry: the index keeps
-- an owner's list from walking past the jobs of others, and without owners there are no others.
CREATE INDEX jobs_owned ON jobs (owner_id, coalesce(shelf_of(status, version), 10::smallint), job_id) WHERE owner_id <> '';

CREATE INDEX jobs_ordered ON jobs (ordering_key, owner_id, order_number)
    WHERE ordering_key IS NOT NULL AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');
CREATE INDEX jobs_of_key ON jobs (ordering_key, job_id) WHERE ordering_key IS NOT NULL; -- for a list of them
CREATE INDEX jobs_of_owners_key ON jobs (owner_id, ordering_key, job_id) WHERE ordering_key IS NOT NULL AND owner_id <> '';
-- Jobs with dependencies, to list those that depend on one job: they have the same owner as that job. An index of the ids
-- in after_ids would have ten thousand entries for each change of a job with as many.
CREATE INDEX jobs_tied ON jobs (owner_id, job_id) WHERE after_ids IS NOT NULL;

-- The gateway makes a trace id by the same clock as the ids of the jobs that it accepts a moment later. So jobs with such
-- a trace id are found by their primary key, in 256 ms of jobs: the first 40 bits of a UUIDv7. Only a trace id from
-- elsewhere needs an index.
CREATE INDEX jobs_of_trace ON jobs (trace_id, job_id)
    WHERE trace_id >= job_id OR substring(uuid_send(trace_id) FOR 5) <> substring(uuid_send(job_id) FOR 5);
CREATE INDEX jobs_of_error ON jobs (error_code, job_id) WHERE error_code IS NOT NULL;
CREATE INDEX jobs_of_owners_error ON jobs (owner_id, error_code, job_id) WHERE error_code IS NOT NULL AND owner_id <> '';
-- With this index the old job shows the newest job that repeats it, and a deleted job needs no clean-up.
CREATE INDEX jobs_run_again ON jobs (run_again_of, job_id) WHERE run_again_of IS NOT NULL;

CREATE INDEX jobs_unique_active ON jobs (owner_id, (policies -> 'unique' ->> 'key'))
    WHERE policies -> 'unique' IS NOT NULL AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');
CREATE INDEX jobs_unique ON jobs (owner_id, (policies -> 'unique' ->> 'key'), created_at)
    WHERE policies -> 'unique' IS NOT NULL;
CREATE INDEX jobs_throttled ON jobs (owner_id, (policies -> 'throttle' ->> 'key'), (coalesce(run_at, created_at)))
    WHERE policies -> 'throttle' IS NOT NULL;
-- The held jobs: those that are due, those that a command has made ready, and the one with a key.
CREATE INDEX jobs_held ON jobs (run_at) WHERE held;
CREATE INDEX jobs_unheld ON jobs (job_id) WHERE NOT held;
CREATE UNIQUE INDEX jobs_debounced ON jobs (owner_id, (policies -> 'debounce' ->> 'key')) WHERE held AND version = 0;

-- The jobs of a batch by state: to count them, to find one that has not ended, and to list them. The state is a column and
-- not shelf_of, or a count would read the jobs and not only the index.
CREATE INDEX jobs_of_batch ON jobs (batch_id, status, job_id) WHERE batch_id IS NOT NULL;
-- The fan-outs that have not ended; the jobs of a fan-out, each element once; and those of them that have not ended.
CREATE INDEX jobs_fan_outs ON jobs (job_id)
    WHERE for_each IS NOT NULL AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');
CREATE UNIQUE INDEX jobs_elements ON jobs (fan_out_id, element) WHERE fan_out_id IS NOT NULL;
CREATE INDEX jobs_elements_live ON jobs (fan_out_id)
    WHERE fan_out_id IS NOT NULL AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');

-- Numbers are taken under a lock on their key, so for one key they rise in the order of commits. A fan-out has a place in
-- the order of its key, and up to 10,000 jobs of elements come right before it, with numbers above 0.
CREATE SEQUENCE order_numbers INCREMENT BY 16384 START WITH 16384;

-- How often a row of this age has become due to be published again: at 10, 20, 40, 80, 160, 300, 600, 900 … s.
CREATE FUNCTION times_due(age interval) RETURNS integer LANGUAGE sql IMMUTABLE
    RETURN width_bucket(date_part('epoch', age), ARRAY[10, 20, 40, 80, 160, 300]::float8[])
         + greatest(floor(date_part('epoch', age) / 300), 0)::integer;

-- Commands that were answered with 202 and that no job-status has confirmed yet: at most one for each job.
CREATE TABLE commands (
    job_id       uuid PRIMARY KEY,
    number       integer     NOT NULL CHECK (number > 0),
    command      text        NOT NULL,
    by_whom      text        NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    run_at       timestamptz,
    operation_id uuid,                                    -- of the operation that stored it; null: a request of its own
    change       json,                                    -- the new properties of the job, valid once the scheduler has applied them; the payload may be sealed
    change_hash  bytea,                                   -- of the request, to recognize a repeated one
    CONSTRAINT commands_command_check CHECK (
        command IN ('cancel', 'retry', 'reschedule', 'delete', 'change') AND (command = 'reschedule') = (run_at IS NOT NULL)
        AND (command = 'change') = (change IS NOT NULL) AND (command = 'change') = (change_hash IS NOT NULL))
);
CREATE INDEX commands_of_operation ON commands (operation_id) WHERE operation_id IS NOT NULL;

-- The API applies a change as a whole, in the transaction that stores the scheduler's answer and deletes the command. The
-- answer is at the end of the snapshot, behind the handler's output.
-- +goose StatementBegin
CREATE FUNCTION apply_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    applied text := format('"lastCommand":{"number":%s,"command":"change","applied":true}}', old.number);
BEGIN
    UPDATE public.jobs SET
        queue           = coalesce(old.change ->> 'queue', queue),
        payload         = coalesce(old.change -> 'payload', payload),
        spec            = CASE WHEN old.change -> 'spec' IS NULL THEN spec
                               ELSE (spec::jsonb || (old.change ->> 'spec')::jsonb)::json END,
        run_at          = coalesce((old.change ->> 'runAt')::timestamptz, run_at),
        expires_at      = CASE WHEN (old.change ->> 'neverExpires')::boolean THEN NULL
                               ELSE coalesce((old.change ->> 'expiresAt')::timestamptz, expires_at) END,
        tags            = CASE WHEN old.change -> 'tags' IS NULL THEN tags
                               ELSE ARRAY(SELECT json_array_elements_text(old.change -> 'tags')) END
    WHERE job_id = old.job_id AND right(snapshot, length(applied)) = applied;
    RETURN NULL;
END $$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION apply_change FROM PUBLIC;
CREATE TRIGGER commands_change AFTER DELETE ON commands FOR EACH ROW WHEN (old.command = 'change')
    EXECUTE FUNCTION apply_change();

-- Whether the message of a job's last failure contains a text, encoded as in JSON. It is all that bulk learns of a
-- snapshot, which it may not read. Lists find the message in the same way (shared/apidb/joblist).
-- +goose StatementBegin
CREATE FUNCTION failure_has(of_job uuid, wanted text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((
        SELECT position(lower(wanted) IN lower(substring(left(snapshot, 32768)
            FROM '"lastError":\{"errorCode":"(?:[^"\\]|\\.)*","message":"(?!sealed:)((?:[^"\\]|\\.)*)"'))) > 0
        FROM public.jobs WHERE job_id = of_job AND error_code IS NOT NULL
    ), false)
$$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION failure_has FROM PUBLIC;

-- The requests with a key or an event that have changed a held job, so that a repeated one changes nothing. identity is a
-- hash of the key or the event.
CREATE TABLE merged_submits (
    owner_id     text  NOT NULL,
    identity     bytea NOT NULL,
    request_hash bytea,                                   -- beside a key
    job_id       uuid  NOT NULL,
    PRIMARY KEY (owner_id, identity)
);
CREATE INDEX merged_submits_of_job ON merged_submits (job_id);

-- The outcomes of attempts that outside systems reported, or that follow from a passed deadline: an attempt's first row
-- counts. A row stays as long as its job, so that a repeated callback gets the same answer.
CREATE TABLE callbacks (
    job_id      uuid        NOT NULL,
    attempt     integer     NOT NULL CHECK (attempt > 0),
    outcome     text        NOT NULL CHECK (outcome IN ('completed', 'failed')),
    output      json,                                     -- null once the scheduler has confirmed it
    error_code  text        NOT NULL DEFAULT '',
    message     text        NOT NULL DEFAULT '',
    retryable   boolean     NOT NULL DEFAULT true,
    body_hash   bytea       NOT NULL,                     -- of the callback, to recognize a repeated one; empty: the deadline passed
    received_at timestamptz NOT NULL DEFAULT now(),
    answered_at timestamptz,                              -- when a status of the scheduler first confirmed it
    PRIMARY KEY (job_id, attempt),
    CHECK (outcome = 'failed' OR error_code = '' AND message = '')
);
CREATE INDEX callbacks_unanswered ON callbacks (job_id) WHERE answered_at IS NULL;

-- Whether an attempt is over, by the latest status of its job.
CREATE FUNCTION attempt_is_over(n integer, status text, version bigint, attempt integer) RETURNS boolean LANGUAGE sql IMMUTABLE
    RETURN version > 0 AND (attempt > n OR attempt = n AND status NOT IN ('QUEUED', 'RUNNING', 'WAITING'));

-- A foreign key with ON DELETE CASCADE runs a statement for each deleted job: three keys to jobs took 9 of the 15 µs that
-- the deletion of a plain job cost, though few jobs have such rows. One trigger deletes the rows of all jobs of a
-- statement. Like a key, it sees what was committed while the statement waited for a job. Each transaction that inserts
-- such a row locks the job first, so no row is left without its job.
-- +goose StatementBegin
CREATE FUNCTION delete_with_jobs() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ids uuid[] := ARRAY(SELECT job_id FROM gone ORDER BY job_id);
BEGIN
    DELETE FROM public.commands WHERE job_id = ANY (ids);
    DELETE FROM public.callbacks WHERE job_id = ANY (ids);
    DELETE FROM public.merged_submits WHERE job_id = ANY (ids);
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER jobs_deleted_with AFTER DELETE ON jobs REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION delete_with_jobs();

CREATE TABLE attempt_logs (
    job_id      uuid        NOT NULL,
    attempt     integer     NOT NULL CHECK (attempt > 0),
    first_line  integer     NOT NULL CHECK (first_line >= 0),
    lines       json        NOT NULL,
    received_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job_id, attempt, first_line)
);

-- The ends of jobs that are delivered to their callback_url, one row for each end: a job that was retried by hand has
-- several. A row has everything that its delivery needs, even if the job is changed or deleted.
CREATE TABLE deliveries (
    job_id      uuid        NOT NULL,
    version     bigint      NOT NULL,                     -- of the job when it ended
    owner_id    text        NOT NULL,
    job_status  text        NOT NULL CHECK (job_status IN ('COMPLETED', 'FAILED', 'CANCELLED')),
    url         text        NOT NULL,
    host        text        COLLATE "C" NOT NULL GENERATED ALWAYS AS ( -- with its port; deliveries to one host must not hold up the others
        coalesce(lower(substring(url FROM '^[^:]*://([^/?#]+)')), lower(url))) STORED,
    job         json        NOT NULL,                     -- its row when it ended, without payload and snapshot
    snapshot    text        NOT NULL,                     -- the status with which it ended
    status      text        NOT NULL DEFAULT 'PENDING' CHECK (status IN ('PENDING', 'DELIVERED', 'FAILED')),
    tries       integer     NOT NULL DEFAULT 0 CHECK (tries >= 0),
    next_at     timestamptz DEFAULT now(),                -- of a PENDING one: not before; during a try: when to try again at the latest
    last_try_at timestamptz,
    last_answer integer,                                  -- its HTTP status; null: there was none
    last_error  text        NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    PRIMARY KEY (job_id, version),
    CHECK ((status = 'PENDING') = (next_at IS NOT NULL)),
    CHECK ((status = 'PENDING') = (finished_at IS NULL))
);
CREATE INDEX deliveries_due ON deliveries (next_at) WHERE status = 'PENDING';
-- Deliveries take turns by owner, and by host within an owner.
CREATE INDEX deliveries_due_by_host ON deliveries (host, next_at) WHERE status = 'PENDING';
CREATE INDEX deliveries_due_by_owner ON deliveries (owner_id, host, next_at) WHERE status = 'PENDING';
CREATE INDEX deliveries_by_status ON deliveries (status, job_id, version);
CREATE INDEX deliveries_owned ON deliveries (owner_id, status, job_id, version) WHERE owner_id <> '';
CREATE INDEX deliveries_finished ON deliveries (finished_at) WHERE finished_at IS NOT NULL;

-- Signed messages that were accepted, for as long as their signatures are valid. A message is recognized by its id,
-- content and attempt: different senders may use the same id.
CREATE TABLE webhook_ids (
    message_hash bytea PRIMARY KEY,
    seen_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX webhook_ids_seen ON webhook_ids (seen_at);

-- Many jobs of one owner that end together.
CREATE TABLE batches (
    batch_id        uuid PRIMARY KEY,                     -- UUIDv7: the key orders by age
    owner_id        text        NOT NULL,
    name            text,
    on_complete     json,                                 -- requests of jobs, which may be sealed
    on_failure      json,
    idempotency_key text,
    request_hash    bytea,                                -- of the request, if there is a key
    created_at      timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz,
    -- The following columns have its progress.
    status          text        NOT NULL DEFAULT 'OPEN'
        CHECK (status IN ('OPEN', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')),
    closed_at       timestamptz,
    expired_at      timestamptz,                          -- when its waiting jobs were cancelled
    finished_at     timestamptz,
    round           integer     NOT NULL DEFAULT 0,       -- how often it has been retried after its end
    operation_id    uuid,                                 -- the last operation that delays its end
    counts          json,                                 -- jobs by state at its end
    follow_up_id    uuid,                                 -- the job that was made at its end
    follow_up_error text,                                 -- why the job could not be made
    -- A flow is a batch whose jobs name each other: its jobs by their names, and what each of them waits for; null: no flow.
    graph           json,
    retry           json,                                 -- the jobs of a flow that are still to run again, by their ids; null: it is not being retried
    -- Which run of a flow this is, counted from 1, and how the earlier ones stood when the next began; null: there were none.
    run             integer     NOT NULL DEFAULT 1,
    earlier_runs    json,
    CHECK ((idempotency_key IS NULL) = (request_hash IS NULL)),
    CHECK ((closed_at IS NULL) = (status = 'OPEN')),
    CHECK ((finished_at IS NULL) = (status IN ('OPEN', 'RUNNING')) AND (finished_at IS NULL) = (counts IS NULL)),
    CHECK (finished_at IS NOT NULL OR follow_up_id IS NULL AND follow_up_error IS NULL)
);
CREATE INDEX batches_of_owner ON batches (owner_id, batch_id);
CREATE INDEX batches_watched ON batches (batch_id)
    WHERE finished_at IS NULL AND (closed_at IS NOT NULL OR expires_at IS NOT NULL);
CREATE UNIQUE INDEX batches_idempotency ON batches (owner_id, idempotency_key) WHERE idempotency_key IS NOT NULL;

-- Deleted jobs of a batch that has not ended. projection only adds rows, as to operation_answers.
CREATE TABLE batch_deletions (
    batch_id uuid   NOT NULL REFERENCES batches ON DELETE CASCADE,
    status   text   NOT NULL CHECK (status IN ('COMPLETED', 'FAILED', 'CANCELLED')),
    jobs     bigint NOT NULL CHECK (jobs > 0)
);
CREATE INDEX batch_deletions_of ON batch_deletions (batch_id);

-- The jobs of a flow that a later run has replaced by new ones, without the jobs of elements: these belong to their
-- fan-out. Replaced jobs stay as they ended, and count no more. The rows stay until the flow is deleted, because a
-- fan-out can be deleted before the jobs of its elements.
CREATE TABLE replaced_jobs (
    batch_id uuid NOT NULL,
    job_id   uuid NOT NULL,
    PRIMARY KEY (batch_id, job_id)
);

-- A command for many jobs: for those on a list, or for all that match a filter.
CREATE TABLE operations (
    operation_id    uuid PRIMARY KEY,                     -- UUIDv7: the key orders by age
    command         text        NOT NULL CHECK (command IN ('cancel', 'retry', 'reschedule', 'delete')),
    run_at          timestamptz,
    by_whom         text        NOT NULL,
    filter          json,
    job_ids         uuid[],                               -- in order; null: those that match the filter
    idempotency_key text,
    request_hash    bytea,                                -- of the request, if there is a key
    created_at      timestamptz NOT NULL DEFAULT now(),
    -- The following columns have its progress.
    status          text        NOT NULL DEFAULT 'RUNNING'
        CHECK (status IN ('RUNNING', 'ABORTING', 'ABORTED', 'COMPLETED')),
    updated_at      timestamptz NOT NULL DEFAULT now(),
    finished_at     timestamptz,
    after_id        uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000', -- the last job that it has reached
    walked          boolean     NOT NULL DEFAULT false,   -- it has reached all jobs
    matched         bigint      NOT NULL DEFAULT 0,
    asked           bigint      NOT NULL DEFAULT 0,       -- jobs for which a command was stored
    applied         bigint      NOT NULL DEFAULT 0,
    refused         bigint      NOT NULL DEFAULT 0,       -- by the scheduler
    skipped         bigint      NOT NULL DEFAULT 0,       -- jobs without a command
    reasons         json        NOT NULL DEFAULT '{}',    -- by reason, how many jobs were refused or skipped
    owner_id        text,                                 -- null: it is about the jobs of all owners, and no single owner sees it
    CHECK ((command = 'reschedule') = (run_at IS NOT NULL)),
    CHECK ((filter IS NULL) <> (job_ids IS NULL)),
    CHECK ((idempotency_key IS NULL) = (request_hash IS NULL)),
    CHECK ((finished_at IS NULL) = (status IN ('RUNNING', 'ABORTING'))),
    CHECK (matched = asked + skipped AND asked >= applied + refused)
);
CREATE INDEX operations_unfinished ON operations (operation_id) WHERE finished_at IS NULL;
CREATE UNIQUE INDEX operations_idempotency ON operations (owner_id, idempotency_key) NULLS NOT DISTINCT
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX operations_owned ON operations (owner_id, operation_id) WHERE owner_id IS NOT NULL;

-- The first jobs that were refused or skipped.
CREATE TABLE operation_skips (
    operation_id uuid NOT NULL REFERENCES operations ON DELETE CASCADE,
    job_id       uuid NOT NULL,
    reason       text NOT NULL,
    PRIMARY KEY (operation_id, job_id)
);

-- Answers to an operation's commands that it has not counted yet. projection only adds rows when it consumes them: bulk
-- locks the operation's own row together with rows of jobs.
CREATE TABLE operation_answers (
    operation_id uuid   NOT NULL,
    applied      bigint NOT NULL,
    refused_id   uuid,                                    -- the refused job; null: the command was not refused
    reason       text,
    CHECK ((refused_id IS NULL) = (reason IS NULL) AND (refused_id IS NULL) = (applied > 0))
);
CREATE INDEX operation_answers_of ON operation_answers (operation_id);

CREATE TABLE schedules (
    schedule_id uuid PRIMARY KEY,
    owner_id    text        NOT NULL,
    name        text        NOT NULL CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,99}$'),
    cron        text        NOT NULL,
    time_zone   text        NOT NULL,
    anchor_at   timestamptz NOT NULL,                     -- from which @every counts
    job         json        NOT NULL,                     -- the request, as it was sent
    overlap     text        NOT NULL CHECK (overlap IN ('allow', 'skip', 'cancel')),
    missed      text        NOT NULL CHECK (missed IN ('skip', 'one', 'all')),
    paused      boolean     NOT NULL,
    start_at    timestamptz,
    end_at      timestamptz,
    next_at     timestamptz,                              -- the first tick without a row in schedule_ticks; null: none will come
    last_at     timestamptz,                              -- the last tick that fired, and its job
    last_job_id uuid,
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now(),
    UNIQUE (name, owner_id)
);
CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL AND NOT paused;
CREATE INDEX schedules_owned ON schedules (owner_id); -- an owner's schedules are counted when it creates one

-- The result of each tick. A job shows its tick by the identity of its event.
CREATE TABLE schedule_ticks (
    schedule_id uuid        NOT NULL REFERENCES schedules ON DELETE CASCADE,
    at          timestamptz NOT NULL,
    outcome     text        NOT NULL CHECK (outcome IN ('fired', 'skipped')),
    reason      text        NOT NULL DEFAULT '',
    job_id      uuid,
    recorded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (schedule_id, at),
    CHECK ((outcome = 'fired') = (job_id IS NOT NULL))
);

-- Jobs that a newer tick of their schedule must cancel (overlap: cancel), but that had another unanswered command or
-- callback. cron tries again until they are cancelled or have ended. There are only few rows at any time, each for a
-- short time.
CREATE TABLE schedule_cancels (
    job_id uuid PRIMARY KEY
);

-- The controls. A control that restricts nothing is deleted once the scheduler has applied it. That of a worker makes it
-- drain, and is deleted with the worker. That of a created queue has the function that serves it, and makes workers serve
-- the queue.
CREATE TABLE controls (
    kind                   text             NOT NULL
        CHECK (kind IN ('queue', 'type', 'owner', 'fairnessKey', 'worker', 'createdQueue')),
    name                   text             NOT NULL CHECK (length(name) BETWEEN 1 AND 255),
    version                bigint           NOT NULL,
    paused                 boolean          NOT NULL,
    max_running            integer CHECK (max_running >= 0),
    starts_per_second      double precision CHECK (starts_per_second > 0),
    applied_version        bigint           NOT NULL DEFAULT 0, -- the version that the scheduler has applied
    updated_at             timestamptz      NOT NULL DEFAULT now(),
    updated_by             text             NOT NULL,
    -- The part that the installation has set, which an owner may only tighten.
    least_paused           boolean          NOT NULL DEFAULT false,
    most_running           integer,
    most_starts_per_second double precision,
    weight                 smallint CHECK (weight IS NULL OR kind = 'fairnessKey' AND weight BETWEEN 2 AND 100), -- null: 1
    workers                text CHECK (workers IN ('runjob', 'pull')),
    PRIMARY KEY (kind, name)
);
-- A sequence and not a number in the row: the row may be deleted, and the next control of the same name must still be
-- newer.
CREATE SEQUENCE control_versions;

-- The queues that were created through the API; those of QUEUES have no row. A removed one stays for a while, so that a
-- job that came too late is found, and a retry of its jobs is refused.
CREATE TABLE queues (
    name        text PRIMARY KEY CHECK (name ~ '^[a-z0-9-]{1,63}$'),
    workers     text        NOT NULL CHECK (workers IN ('runjob', 'pull')),
    state       text        NOT NULL DEFAULT 'ACTIVE' CHECK (state IN ('ACTIVE', 'REMOVING', 'REMOVED')),
    created_at  timestamptz NOT NULL DEFAULT now(),
    created_by  text        NOT NULL,
    removing_at timestamptz,
    removed_at  timestamptz,
    CHECK ((removing_at IS NULL) = (state = 'ACTIVE') AND (removed_at IS NULL) = (state <> 'REMOVED'))
);

-- The workers' latest heartbeats, for the API to show.
CREATE TABLE workers (
    worker_id text PRIMARY KEY,
    seen_at   timestamptz NOT NULL DEFAULT now(),
    beat      json        NOT NULL
);

-- The counts of the statistics: accepted and ended jobs (n), and the number of ended jobs that still exist (kept; a
-- retry or delete lowers it). Each statement that changes jobs inserts one row for each type and batch, so no
-- transaction waits for another.
CREATE TABLE tally_entries (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL DEFAULT now(),
    queue       text        NOT NULL,
    job_type    text        NOT NULL,
    what        text        NOT NULL CHECK (what IN ('ACCEPTED', 'COMPLETED', 'FAILED', 'CANCELLED')),
    n           integer     NOT NULL,
    kept        integer     NOT NULL,
    times       integer[]   NOT NULL DEFAULT '{}',        -- three buckets of histograms for each job, see statstore
    owner_id    text        NOT NULL DEFAULT '',
    error_codes text[]      NOT NULL DEFAULT '{}'         -- of each job that failed for good
);

-- The same counts, summed by minute, later by hour and by day; for older times only kept remains. Each owner has its own
-- numbers, in addition to those of all owners, so that a read of one does not walk through the others.
CREATE TABLE tallies (
    grain       text        NOT NULL CHECK (grain IN ('minute', 'hour', 'day', 'ever')),
    at          timestamptz NOT NULL,
    queue       text        NOT NULL,
    job_type    text        NOT NULL,
    what        text        NOT NULL,
    n           bigint      NOT NULL,
    kept        bigint      NOT NULL,
    waited      bytea       NOT NULL DEFAULT '',          -- histograms, as varints: from acceptance to start,
    ran         bytea       NOT NULL DEFAULT '',          -- from start to end,
    took        bytea       NOT NULL DEFAULT '',          -- and from acceptance to end
    everyone    boolean     NOT NULL,                     -- all owners' together
    owner_id    text        NOT NULL,
    error_codes json        NOT NULL DEFAULT '{}',        -- of the jobs that failed for good: how many have each code
    PRIMARY KEY (everyone, owner_id, grain, at, queue, job_type, what),
    CHECK (NOT everyone OR owner_id = '')
);
CREATE INDEX tallies_aged ON tallies (grain, at);

-- Counts each deletion of a job, whatever statement makes it.
-- +goose StatementBegin
CREATE FUNCTION tally_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tally_entries (owner_id, queue, job_type, what, n, kept)
    SELECT owner_id, queue, job_type, status, 0, -count(*) FROM gone
    WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED') GROUP BY owner_id, queue, job_type, status;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER jobs_deleted AFTER DELETE ON jobs REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION tally_deleted();

-- The last count of jobs that have not ended: one row. With it the number of ended jobs at that time, so that both counts
-- are of one instant.
CREATE TABLE job_counts (
    id       boolean     PRIMARY KEY DEFAULT true CHECK (id),
    as_of    timestamptz NOT NULL,
    took     interval    NOT NULL,                        -- how long the count took
    counts   json        NOT NULL,
    ended    json        NOT NULL
);

-- Each owner's part of job_counts. An owner without a row has no unfinished job.
CREATE TABLE owner_job_counts (
    owner_id text PRIMARY KEY,
    counts   text NOT NULL,
    ended    text NOT NULL DEFAULT '[]'
);

-- API keys, of which only a hash is stored.
CREATE TABLE api_keys (
    key_id       text PRIMARY KEY,
    owner_id     text        NOT NULL,                    -- the owner whose jobs it sees; '': a key of the installation
    name         text        NOT NULL,
    roles        text[]      NOT NULL CHECK (roles <@ '{submit,read,operate,work,admin}' AND cardinality(roles) > 0),
    secret_hash  bytea       NOT NULL CHECK (octet_length(secret_hash) = 32), -- SHA-256 of the whole key
    created_at   timestamptz NOT NULL DEFAULT now(),
    created_by   text        NOT NULL,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz,                             -- to the minute
    -- Of a key with the role work: the job types and queues whose attempts it may claim; '{}': any.
    work_types   text[]      NOT NULL DEFAULT '{}',
    work_queues  text[]      NOT NULL DEFAULT '{}'
);
CREATE INDEX api_keys_of ON api_keys (owner_id, key_id);

-- The only way by which a function deletes keys: an owner's, 30 days after they were revoked or expired. A bootstrap
-- key stays: without its row the gateway would make the key of its setting anew, and a revoked one would be valid
-- again.
-- +goose StatementBegin
CREATE FUNCTION api_keys_forget(owner text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    forgotten bigint;
BEGIN
    DELETE FROM public.api_keys
    WHERE owner_id = owner AND least(revoked_at, expires_at) < now() - interval '30 days' AND created_by <> 'bootstrap';
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    RETURN forgotten;
END $$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION api_keys_forget FROM PUBLIC;

-- The audit log: which actor did what to what, when and from where. Entries are never changed; projection deletes old
-- ones.
CREATE TABLE audit_log (
    audit_id    bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL DEFAULT now(),
    owner_id    text        NOT NULL,                     -- the owner of what was changed
    actor       text        NOT NULL,                     -- key:<id> or oidc:<subject>
    action      text        NOT NULL,                     -- job.submit, job.cancel, key.create …
    resource    text        NOT NULL DEFAULT '',          -- if it is not a job: schedule/nightly, key/4f7q…
    job_ids     uuid[]      NOT NULL DEFAULT '{}',
    remote_addr text        NOT NULL,
    user_agent  text        NOT NULL,
    trace_id    uuid        NOT NULL,
    details     json
);
CREATE INDEX audit_log_of ON audit_log (owner_id, audit_id);
CREATE INDEX audit_log_jobs ON audit_log USING gin (job_ids) WHERE job_ids <> '{}';

-- The only way by which a function deletes entries of the audit log: the oldest ones, some at a time, that are older
-- than age. It refuses an age of less than 30 days. It compares instants: '-12000 months 360030 days' equals 30 days,
-- and leads into the future.
-- +goose StatementBegin
CREATE FUNCTION audit_forget(age interval, max_entries integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    until timestamptz := now() - age;
    forgotten bigint;
BEGIN
    IF until IS NULL OR until > now() - interval '720 hours' THEN
        RAISE insufficient_privilege USING MESSAGE = 'the audit log keeps entries for 30 days at least';
    END IF;
    DELETE FROM public.audit_log AS entry
    WHERE entry.audit_id IN (SELECT oldest.audit_id FROM public.audit_log AS oldest ORDER BY oldest.audit_id LIMIT max_entries)
        AND entry.at < until;
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    RETURN forgotten;
END $$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION audit_forget FROM PUBLIC;

-- Records that a function could not use, each with everything that is needed to publish it again. RejectedTrim bounds
-- their number and their bytes: garbage on a topic must not fill the disk.
CREATE TABLE rejected_records (
    rejected_number bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- in the order of arrival
    rejected_id     uuid        NOT NULL UNIQUE,          -- a hash of function, place and content: one row for a repeated report
    function        text        NOT NULL,                 -- the function that could not use it
    topic           text        NOT NULL,
    partition       integer,                              -- null: it came over HTTP
    record_offset   bigint,
    key             bytea,                                -- null: it has none
    headers         json        NOT NULL,                 -- [{"key": base64, "value": base64}], in their order
    value           bytea,                                -- null: it has none
    bytes           integer     NOT NULL,                 -- of key, headers and value
    whole           boolean     NOT NULL,                 -- false: a part was too large to be stored, or is unknown
    truncated       boolean     NOT NULL,
    reason          text        NOT NULL,
    trace_id        uuid,
    recorded_at     timestamptz,                          -- the record's own time
    rejected_at     timestamptz NOT NULL,
    redriven_at     timestamptz,
    redriven_by     text,
    CHECK ((partition IS NULL) = (record_offset IS NULL)),
    CHECK ((redriven_at IS NULL) = (redriven_by IS NULL)),
    CHECK (NOT (whole AND truncated))
);
CREATE INDEX rejected_records_aged ON rejected_records (rejected_at);

-- +goose Down
DROP TABLE rejected_records;
DROP FUNCTION audit_forget;
DROP TABLE audit_log;
DROP FUNCTION api_keys_forget;
DROP TABLE api_keys, owner_job_counts, job_counts, workers, queues, controls, schedule_cancels, schedule_ticks, schedules;
DROP SEQUENCE control_versions;
DROP TABLE operation_answers, operation_skips, operations, replaced_jobs, batch_deletions, batches, webhook_ids, deliveries;
DROP TABLE attempt_logs, callbacks, merged_submits, commands, jobs, tallies, tally_entries;
DROP FUNCTION tally_deleted, delete_with_jobs, attempt_is_over, failure_has, apply_change, times_due, shelf_of;
DROP SEQUENCE order_numbers;
