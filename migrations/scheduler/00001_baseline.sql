-- +goose Up
-- Whether a job can be as its row describes it. The one CHECK of jobs calls it, because PostgreSQL parses the expression
-- of a CHECK anew for every statement (80 µs for this one, which is nothing for a batch but a lot for a single job), and
-- caches that of a function. COMPLETED keeps the lease and the partition that its attempt had.
-- +goose StatementBegin
CREATE FUNCTION job_is_possible(
    status text, attempt integer, due_at timestamptz, callback_deadline_at timestamptz, lease_expires_at timestamptz,
    partition smallint, cancel_requested_at timestamptz, finished_at timestamptz, error_code text, queue text,
    retry_count smallint, lost_count smallint, version bigint, command_seq integer, moves smallint
) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CASE status
        WHEN 'COMPLETED' THEN attempt > 0 AND finished_at IS NOT NULL AND due_at IS NULL
                              AND callback_deadline_at IS NULL AND cancel_requested_at IS NULL
        WHEN 'QUEUED'    THEN attempt > 0 AND finished_at IS NULL AND due_at IS NULL AND callback_deadline_at IS NULL
                              AND lease_expires_at IS NOT NULL AND partition IS NOT NULL
        WHEN 'RUNNING'   THEN attempt > 0 AND finished_at IS NULL AND due_at IS NULL AND callback_deadline_at IS NULL
                              AND lease_expires_at IS NOT NULL AND partition IS NOT NULL
        WHEN 'PENDING'   THEN finished_at IS NULL AND due_at IS NULL AND callback_deadline_at IS NULL
                              AND lease_expires_at IS NULL AND partition IS NULL AND cancel_requested_at IS NULL
        WHEN 'SCHEDULED' THEN finished_at IS NULL AND due_at IS NOT NULL AND callback_deadline_at IS NULL
                              AND lease_expires_at IS NULL AND partition IS NULL AND cancel_requested_at IS NULL
        WHEN 'RETRYING'  THEN attempt > 0 AND finished_at IS NULL AND due_at IS NOT NULL
                              AND callback_deadline_at IS NULL
                              AND lease_expires_at IS NULL AND partition IS NULL AND cancel_requested_at IS NULL
        WHEN 'WAITING'   THEN attempt > 0 AND finished_at IS NULL AND due_at IS NOT NULL
                              AND callback_deadline_at IS NOT NULL
                              AND lease_expires_at IS NULL AND partition IS NULL AND cancel_requested_at IS NULL
        WHEN 'FAILED'    THEN error_code IS NOT NULL AND finished_at IS NOT NULL AND due_at IS NULL
                              AND callback_deadline_at IS NULL
                              AND lease_expires_at IS NULL AND partition IS NULL AND cancel_requested_at IS NULL
        WHEN 'CANCELLED' THEN finished_at IS NOT NULL AND due_at IS NULL AND callback_deadline_at IS NULL
                              AND lease_expires_at IS NULL AND partition IS NULL AND cancel_requested_at IS NULL
        ELSE false
    END
    AND octet_length(queue) BETWEEN 1 AND 63
    AND retry_count >= 0
    AND lost_count >= 0
    AND version > 0
    AND attempt >= 0
    AND command_seq >= 0
    AND moves BETWEEN 1 AND 100;
END $$;
-- +goose StatementEnd

-- The state of each job that may change again, and its attempts. One narrow row for each job: one insert and, for a plain
-- job, one update before it leaves for ended.
CREATE TABLE jobs (
    job_id               uuid PRIMARY KEY,
    trace_id             uuid        NOT NULL,
    job_type             text        NOT NULL,
    queue                text        NOT NULL,
    payload              json        NOT NULL,
    spec                 json        NOT NULL,             -- how it is to run; jobevent.Spec has its members
    status               text        NOT NULL,
    version              bigint      NOT NULL DEFAULT 1,
    attempt              integer     NOT NULL DEFAULT 0,
    retry_count          smallint    NOT NULL DEFAULT 0,
    lost_count           smallint    NOT NULL DEFAULT 0,
    rank                 timestamptz NOT NULL,             -- ready_at − priority · 10 s; the smallest goes first
    due_at               timestamptz,                      -- SCHEDULED, RETRYING: when it may run; WAITING: when to ask the API for the callback
    callback_deadline_at timestamptz,                      -- WAITING: the deadline that the outside system got
    lease_expires_at     timestamptz,                      -- QUEUED, RUNNING: when the worker is asked
    partition            smallint,                         -- of the run-job topic to which the attempt was sent
    worker_id            text,                             -- the worker whose heartbeat listed the attempt
    cancel_requested_at  timestamptz,
    command_seq          integer     NOT NULL DEFAULT 0,
    last_command         json,
    history              text        NOT NULL,             -- entries of a JSON array without its brackets: one is added by appending text
    output               json,
    error_code           text,
    error_message        text,
    started_at           timestamptz,                      -- of the latest attempt that started
    finished_at          timestamptz,                      -- of the job
    created_at           timestamptz NOT NULL,
    updated_at           timestamptz NOT NULL DEFAULT now(),
    moves                smallint    NOT NULL DEFAULT 1,   -- the number of entries of history
    owner_id             text,                             -- null: none
    lane                 text,                             -- of its kind, and the controls of its job type and owner; null: none
    blocked_by           text,                             -- order or dependency; null: not blocked by either
    waits_for            integer,                          -- how many of its dependencies have not ended; null: none
    ordering_key         text,                             -- an owner's jobs with the same key run one after another
    order_number         bigint,                           -- rises in the order of acceptance
    expires_at           timestamptz,                      -- cancelled if it has not started by then
    deleted_at           timestamptz,                      -- the API no longer shows it; the row fences off old events
    asked                smallint,                         -- how often watchdog has asked about its attempt without an answer; null: never
    -- The key by which a job shares its queue: the one in its request, or its owner. Byte order, so that Go and SQL agree
    -- on which key comes next.
    fairness_key         text COLLATE "C" NOT NULL DEFAULT '',
    inputs               json,                             -- the jobs whose outputs the payload refers to, by their names there; null: none
    -- The build on which further attempts of a job run while a worker has that build. Null: any build; empty: no attempt
    -- has begun yet.
    build                text,
    -- Retention keeps the jobs of a flow while one of them has not ended, because it may need their outputs; and while one
    -- that has failed is kept, because a retry may need them.
    flow_id              uuid,                             -- null: none
    event                json,                             -- the attributes of the CloudEvent that submitted it; null: none did
    CONSTRAINT jobs_possible CHECK (job_is_possible(
        status, attempt, due_at, callback_deadline_at, lease_expires_at, partition, cancel_requested_at, finished_at,
        error_code, queue, retry_count, lost_count, version, command_seq, moves)),
    CONSTRAINT jobs_blocked CHECK (
        CASE WHEN blocked_by IS NULL THEN true -- a fan-out, which is WAITING, has a place in the order of its key
             ELSE blocked_by IN ('order', 'dependency') AND status IN ('SCHEDULED', 'PENDING', 'WAITING') END)
) WITH (fillfactor = 85);

-- The jobs that are ready, in the orders in which dispatch walks them, whatever the statistics are: those without a lane;
-- those in a lane, the lanes in byte order, so that those of one job type stand together; and those of a fairness key.
CREATE INDEX jobs_pending ON jobs (queue, rank, job_id)
    WHERE status = 'PENDING' AND blocked_by IS NULL AND lane IS NULL;
CREATE INDEX jobs_by_lane ON jobs (queue, lane COLLATE "C", rank, job_id)
    WHERE status = 'PENDING' AND blocked_by IS NULL AND lane IS NOT NULL;
CREATE INDEX jobs_by_key ON jobs (queue, coalesce(lane, ''), fairness_key, rank, job_id)
    WHERE status = 'PENDING' AND blocked_by IS NULL;
CREATE INDEX jobs_in_flight ON jobs (lease_expires_at) WHERE status IN ('QUEUED', 'RUNNING');
CREATE INDEX jobs_due ON jobs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX jobs_expiring ON jobs (expires_at) WHERE expires_at IS NOT NULL AND status IN ('SCHEDULED', 'PENDING');
-- At most one job of a key has the turn.
CREATE UNIQUE INDEX jobs_turn ON jobs (ordering_key, coalesce(owner_id, ''))
    WHERE ordering_key IS NOT NULL AND blocked_by IS DISTINCT FROM 'order'
      AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');
CREATE INDEX jobs_in_line ON jobs (ordering_key, coalesce(owner_id, ''), order_number) WHERE blocked_by = 'order';
-- The few jobs that were lost twice or more in a row, and that may meet on a worker again.
CREATE INDEX jobs_suspects ON jobs (queue)
    WHERE lost_count >= 2 AND status IN ('PENDING', 'QUEUED', 'RUNNING');
CREATE INDEX jobs_of_flow ON jobs (flow_id, status)
    WHERE flow_id IS NOT NULL AND deleted_at IS NULL AND status NOT IN ('COMPLETED', 'CANCELLED');

-- Jobs that completed. They leave jobs, so that the table whose rows and indexes every transaction walks holds only what
-- can still change. A completed job is written without checks and without further indexes.
CREATE TABLE ended (
    job_id          uuid PRIMARY KEY,
    trace_id        uuid        NOT NULL,
    job_type        text        NOT NULL,
    queue           text        NOT NULL,
    payload         json        NOT NULL,
    spec            json        NOT NULL,
    version         bigint      NOT NULL,
    attempt         integer     NOT NULL,
    retry_count     smallint    NOT NULL,
    command_seq     integer     NOT NULL,
    last_command    json,
    history         text        NOT NULL,
    moves           smallint    NOT NULL,
    output          json,
    started_at      timestamptz,
    finished_at     timestamptz NOT NULL,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    owner_id        text,
    ordering_key    text,
    order_number    bigint,
    expires_at      timestamptz,
    deleted_at      timestamptz,
    fairness_key    text COLLATE "C" NOT NULL,
    build           text,
    inputs          json,
    flow_id         uuid,
    event           json
);

-- Each job, wherever its row is. What a completed job cannot have is null.
CREATE VIEW all_jobs AS
SELECT job_id, trace_id, job_type, queue, payload, spec, status, version,
       attempt, retry_count, rank, due_at, callback_deadline_at, cancel_requested_at, command_seq, last_command, history,
       output, error_code, error_message, started_at, finished_at, created_at, updated_at, owner_id, lane, blocked_by,
       ordering_key, order_number, expires_at, deleted_at, fairness_key, build, inputs, flow_id, event
FROM jobs
UNION ALL
SELECT job_id, trace_id, job_type, queue, payload, spec, 'COMPLETED', version,
       attempt, retry_count, finished_at, null, null, null, command_seq, last_command, history,
       output, null, null, started_at, finished_at, created_at, updated_at, owner_id, null, null,
       ordering_key, order_number, expires_at, deleted_at, fairness_key, build, inputs, flow_id, event
FROM ended;

-- The last entries of a history that is full.
-- +goose StatementBegin
CREATE FUNCTION last_moves(history text, most integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT btrim(jsonb_path_query_array(('[' || $1 || ']')::jsonb, '$[last - $n to last]',
                                        jsonb_build_object('n', $2 - 1))::text, '[]')
$$;
-- +goose StatementEnd

-- The jobs of inputs as a run order carries them. If their outputs have more than 512 KiB, it carries none of them.
CREATE FUNCTION parents_of(inputs json) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_agg(json_build_object(
        'name', parents.name, 'jobId', parents."jobId", 'attempt', parents.attempt,
        'output', CASE WHEN parents.bytes <= 524288 THEN parents.output END, 'outputBytes', parents.bytes))
    FROM (
        SELECT input.name, input."jobId", parent.attempt, parent.output,
               sum(octet_length(parent.output::text)) OVER () AS bytes
        FROM json_to_recordset(inputs) AS input (name text, "jobId" uuid)
        LEFT JOIN all_jobs AS parent
            ON parent.job_id = input."jobId" AND parent.status = 'COMPLETED' AND parent.deleted_at IS NULL
    ) AS parents
$$;

-- The dependencies that have not ended.
CREATE TABLE dependencies (
    after_id  uuid NOT NULL,
    job_id    uuid NOT NULL,
    condition text NOT NULL CHECK (condition IN ('completed', 'ended', 'failed')), -- how it has to end
    PRIMARY KEY (after_id, job_id)
);
CREATE INDEX dependencies_of ON dependencies (job_id);

-- The jobs that may not get the turn before another job of their key has arrived, each with the job that must arrive
-- first. Written under the dispatch lock only, like dependencies.
CREATE TABLE order_gaps (
    order_after  uuid NOT NULL,
    job_id       uuid NOT NULL,
    ordering_key text NOT NULL,
    owner_id     text NOT NULL,
    PRIMARY KEY (order_after, job_id)
);
CREATE UNIQUE INDEX order_gaps_of ON order_gaps (job_id);

-- The commands that came before their jobs. Written under the dispatch lock, so that no job is inserted without them.
CREATE TABLE early_commands (
    job_id  uuid        NOT NULL,
    number  integer     NOT NULL,
    command json        NOT NULL,
    kept_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job_id, number)
);

-- The live workers, by their heartbeats.
CREATE TABLE workers (
    worker_id  text PRIMARY KEY,
    partitions json             NOT NULL,              -- queue → partitions of its run-job topic
    slots      integer          NOT NULL CHECK (slots >= 0),
    rate       double precision NOT NULL CHECK (rate >= 0),
    seen_at    timestamptz      NOT NULL DEFAULT now(),
    since      timestamptz      NOT NULL DEFAULT now(), -- the time of its first heartbeat
    job_types  jsonb,                                  -- those that it runs. Null, or null in JSON: any
    build      text,
    -- What the pull workers of a function pull ask for, as its heartbeat lists it: job types for one owner or for all, and
    -- beside it the slots and the rate of each, which change all the time. Null: the worker is no function pull.
    demands    jsonb,
    rooms      json
);

-- The lanes in which jobs wait whose type no live worker of the queue runs, and since when that is known.
CREATE TABLE unserved (
    queue text             NOT NULL,
    lane  text COLLATE "C" NOT NULL,
    since timestamptz      NOT NULL DEFAULT statement_timestamp(),
    PRIMARY KEY (queue, lane)
);
CREATE INDEX unserved_since ON unserved (since);

-- The controls. That of a worker makes it drain. That of a created queue has the function that serves it, and makes
-- workers serve the queue.
CREATE TABLE controls (
    kind              text             NOT NULL
        CHECK (kind IN ('queue', 'type', 'owner', 'fairnessKey', 'worker', 'createdQueue')),
    name              text             NOT NULL CHECK (name <> ''),
    version           bigint           NOT NULL CHECK (version > 0),
    paused            boolean          NOT NULL,
    max_running       integer CHECK (max_running >= 0),
    starts_per_second double precision CHECK (starts_per_second > 0),
    weight            smallint CHECK (weight BETWEEN 1 AND 100), -- of a fairness key; null: 1
    workers           text CHECK (workers IN ('runjob', 'pull')),
    PRIMARY KEY (kind, name)
);

-- The ledger, which dispatching reads instead of counting rows. One row; its lock is the dispatch lock. n grows with
-- each write, so that the index leads to the row's newest version first, however many dead versions a long snapshot
-- keeps.
CREATE TABLE dispatch_state (
    n         bigint PRIMARY KEY,
    in_flight json        NOT NULL, -- queue → the worker that has listed them, or '' → attempts by partition
    floors    json        NOT NULL, -- queue → rank below which no job waits; no entry: no job waits
    due_floor timestamptz,          -- no job is due before it; null: no job will be due
    more      json        NOT NULL DEFAULT '{}' -- what few installations need: jobs in lanes, and jobs that wait for others
);
INSERT INTO dispatch_state VALUES (1, '{}', '{}', null);

-- +goose Down
DROP TABLE dispatch_state, controls, unserved, workers, early_commands, order_gaps, dependencies;
DROP FUNCTION parents_of(json), last_moves(text, integer);
DROP VIEW all_jobs;
DROP TABLE ended, jobs;
DROP FUNCTION job_is_possible;
