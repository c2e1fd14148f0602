-- The database jobweaver_scheduler as its migrations leave it. Written by make generate.

CREATE TABLE cohorts (
    first_id     uuid NOT NULL,
    rank         timestamp with time zone NOT NULL,
    waiting      bigint NOT NULL,
    queue        text NOT NULL,
    job_type     text NOT NULL,
    spec         json NOT NULL,
    owner_id     text,
    fairness_key text COLLATE "C" NOT NULL,
    created_at   timestamp with time zone NOT NULL,
    updated_at   timestamp with time zone NOT NULL DEFAULT now(),
    history      text NOT NULL,
    job_ids      uuid[] NOT NULL,
    trace_ids    uuid[] NOT NULL,
    payloads     json[] NOT NULL,
    "out"        bigint NOT NULL DEFAULT 0,
    CONSTRAINT cohorts_pkey PRIMARY KEY (first_id),
    CONSTRAINT cohorts_possible CHECK ((waiting | "out") <> 0 AND (waiting & "out") = 0 AND cardinality(job_ids) >= 2 AND cardinality(job_ids) <= 64)
) WITH (fillfactor=70);
CREATE INDEX cohorts_best ON cohorts USING btree (queue, rank, first_id);
ALTER TABLE cohorts ALTER payloads SET STORAGE EXTERNAL;

CREATE TABLE controls (
    kind              text NOT NULL,
    name              text NOT NULL,
    version           bigint NOT NULL,
    paused            boolean NOT NULL,
    max_running       integer,
    starts_per_second double precision,
    weight            smallint,
    workers           text,
    CONSTRAINT controls_pkey PRIMARY KEY (kind, name),
    CONSTRAINT controls_kind_check CHECK (kind = ANY (ARRAY['queue'::text, 'type'::text, 'owner'::text, 'fairnessKey'::text, 'worker'::text, 'createdQueue'::text])),
    CONSTRAINT controls_max_running_check CHECK (max_running >= 0),
    CONSTRAINT controls_name_check CHECK (name <> ''::text),
    CONSTRAINT controls_starts_per_second_check CHECK (starts_per_second > 0::double precision),
    CONSTRAINT controls_version_check CHECK (version > 0),
    CONSTRAINT controls_weight_check CHECK (weight >= 1 AND weight <= 100),
    CONSTRAINT controls_workers_check CHECK (workers = ANY (ARRAY['runjob'::text, 'pull'::text]))
);

CREATE TABLE dependencies (
    after_id  uuid NOT NULL,
    job_id    uuid NOT NULL,
    condition text NOT NULL,
    CONSTRAINT dependencies_pkey PRIMARY KEY (after_id, job_id),
    CONSTRAINT dependencies_condition_check CHECK (condition = ANY (ARRAY['completed'::text, 'ended'::text, 'failed'::text]))
);
CREATE INDEX dependencies_of ON dependencies USING btree (job_id);

CREATE TABLE dispatch_state (
    n         bigint NOT NULL,
    in_flight json NOT NULL,
    floors    json NOT NULL,
    due_floor timestamp with time zone,
    more      json NOT NULL DEFAULT '{}'::json,
    CONSTRAINT dispatch_state_pkey PRIMARY KEY (n)
);

CREATE TABLE dispatched (
    first_id         uuid NOT NULL,
    places           bigint NOT NULL,
    "out"            bigint NOT NULL,
    partitions       smallint[] NOT NULL,
    by_function      text,
    dispatched_at    timestamp with time zone NOT NULL,
    lease_expires_at timestamp with time zone NOT NULL,
    CONSTRAINT dispatched_pkey PRIMARY KEY (first_id, places),
    CONSTRAINT dispatched_possible CHECK ("out" <> 0 AND ("out" & (~ places)) = 0)
) WITH (fillfactor=70);

CREATE TABLE early_commands (
    job_id  uuid NOT NULL,
    number  integer NOT NULL,
    command json NOT NULL,
    kept_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT early_commands_pkey PRIMARY KEY (job_id, number)
);

CREATE TABLE ended (
    job_id       uuid NOT NULL,
    trace_id     uuid NOT NULL,
    job_type     text NOT NULL,
    queue        text NOT NULL,
    payload      json NOT NULL,
    spec         json NOT NULL,
    version      bigint NOT NULL,
    attempt      integer NOT NULL,
    retry_count  smallint NOT NULL,
    command_seq  integer NOT NULL,
    last_command json,
    history      text NOT NULL,
    moves        smallint NOT NULL,
    output       json,
    started_at   timestamp with time zone,
    finished_at  timestamp with time zone NOT NULL,
    created_at   timestamp with time zone NOT NULL,
    updated_at   timestamp with time zone NOT NULL,
    owner_id     text,
    ordering_key text,
    order_number bigint,
    expires_at   timestamp with time zone,
    deleted_at   timestamp with time zone,
    fairness_key text COLLATE "C" NOT NULL,
    build        text,
    inputs       json,
    flow_id      uuid,
    event        json,
    CONSTRAINT ended_pkey PRIMARY KEY (job_id)
);

CREATE TABLE ended_cohorts (
    block_id     uuid NOT NULL,
    places       bigint NOT NULL,
    version      bigint NOT NULL,
    queue        text NOT NULL,
    job_type     text NOT NULL,
    spec         json NOT NULL,
    owner_id     text,
    fairness_key text COLLATE "C" NOT NULL,
    worker_id    text,
    created_at   timestamp with time zone NOT NULL,
    ended_at     timestamp with time zone NOT NULL,
    history      text NOT NULL,
    trace_ids    uuid[] NOT NULL,
    payloads     json[] NOT NULL,
    outputs      json[],
    started_at   timestamp with time zone[] NOT NULL,
    finished_at  timestamp with time zone[] NOT NULL,
    CONSTRAINT ended_cohorts_pkey PRIMARY KEY (block_id, places),
    CONSTRAINT ended_cohorts_possible CHECK (cardinality(trace_ids) = bit_count(places::bit(64)) AND cardinality(payloads) = cardinality(trace_ids) AND cardinality(started_at) = cardinality(trace_ids) AND cardinality(finished_at) = cardinality(trace_ids) AND COALESCE(cardinality(outputs) = cardinality(trace_ids), true))
);
ALTER TABLE ended_cohorts ALTER outputs SET STORAGE EXTERNAL;
ALTER TABLE ended_cohorts ALTER payloads SET STORAGE EXTERNAL;

CREATE TABLE jobs (
    job_id               uuid NOT NULL,
    trace_id             uuid NOT NULL,
    job_type             text NOT NULL,
    queue                text NOT NULL,
    payload              json NOT NULL,
    spec                 json NOT NULL,
    status               text NOT NULL,
    version              bigint NOT NULL DEFAULT 1,
    attempt              integer NOT NULL DEFAULT 0,
    retry_count          smallint NOT NULL DEFAULT 0,
    lost_count           smallint NOT NULL DEFAULT 0,
    rank                 timestamp with time zone NOT NULL,
    due_at               timestamp with time zone,
    callback_deadline_at timestamp with time zone,
    lease_expires_at     timestamp with time zone,
    partition            smallint,
    worker_id            text,
    cancel_requested_at  timestamp with time zone,
    command_seq          integer NOT NULL DEFAULT 0,
    last_command         json,
    history              text NOT NULL,
    output               json,
    error_code           text,
    error_message        text,
    started_at           timestamp with time zone,
    finished_at          timestamp with time zone,
    created_at           timestamp with time zone NOT NULL,
    updated_at           timestamp with time zone NOT NULL DEFAULT now(),
    moves                smallint NOT NULL DEFAULT 1,
    owner_id             text,
    lane                 text,
    blocked_by           text,
    waits_for            integer,
    ordering_key         text,
    order_number         bigint,
    expires_at           timestamp with time zone,
    deleted_at           timestamp with time zone,
    asked                smallint,
    fairness_key         text COLLATE "C" NOT NULL DEFAULT ''::text,
    inputs               json,
    build                text,
    flow_id              uuid,
    event                json,
    CONSTRAINT jobs_pkey PRIMARY KEY (job_id),
    CONSTRAINT jobs_blocked CHECK (
CASE
    WHEN blocked_by IS NULL THEN true
    ELSE (blocked_by = ANY (ARRAY['order'::text, 'dependency'::text])) AND (status = ANY (ARRAY['SCHEDULED'::text, 'PENDING'::text, 'WAITING'::text]))
END),
    CONSTRAINT jobs_possible CHECK (job_is_possible(status, attempt, due_at, callback_deadline_at, lease_expires_at, partition, cancel_requested_at, finished_at, error_code, queue, retry_count, lost_count, version, command_seq, moves))
) WITH (fillfactor=85);
CREATE INDEX jobs_by_key ON jobs USING btree (queue, COALESCE(lane, ''::text), fairness_key, rank, job_id) WHERE ((status = 'PENDING'::text) AND (blocked_by IS NULL));
CREATE INDEX jobs_by_lane ON jobs USING btree (queue, lane COLLATE "C", rank, job_id) WHERE ((status = 'PENDING'::text) AND (blocked_by IS NULL) AND (lane IS NOT NULL));
CREATE INDEX jobs_due ON jobs USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX jobs_expiring ON jobs USING btree (expires_at) WHERE ((expires_at IS NOT NULL) AND (status = ANY (ARRAY['SCHEDULED'::text, 'PENDING'::text])));
CREATE INDEX jobs_in_flight ON jobs USING btree (lease_expires_at) WHERE (status = ANY (ARRAY['QUEUED'::text, 'RUNNING'::text]));
CREATE INDEX jobs_in_line ON jobs USING btree (ordering_key, COALESCE(owner_id, ''::text), order_number) WHERE (blocked_by = 'order'::text);
CREATE INDEX jobs_of_flow ON jobs USING btree (flow_id, status) WHERE ((flow_id IS NOT NULL) AND (deleted_at IS NULL) AND (status <> ALL (ARRAY['COMPLETED'::text, 'CANCELLED'::text])));
CREATE INDEX jobs_pending ON jobs USING btree (queue, rank, job_id) WHERE ((status = 'PENDING'::text) AND (blocked_by IS NULL) AND (lane IS NULL));
CREATE INDEX jobs_suspects ON jobs USING btree (queue) WHERE ((lost_count >= 2) AND (status = ANY (ARRAY['PENDING'::text, 'QUEUED'::text, 'RUNNING'::text])));
CREATE UNIQUE INDEX jobs_turn ON jobs USING btree (ordering_key, COALESCE(owner_id, ''::text)) WHERE ((ordering_key IS NOT NULL) AND (blocked_by IS DISTINCT FROM 'order'::text) AND (status <> ALL (ARRAY['COMPLETED'::text, 'FAILED'::text, 'CANCELLED'::text])));

CREATE TABLE order_gaps (
    order_after  uuid NOT NULL,
    job_id       uuid NOT NULL,
    ordering_key text NOT NULL,
    owner_id     text NOT NULL,
    CONSTRAINT order_gaps_pkey PRIMARY KEY (order_after, job_id)
);
CREATE UNIQUE INDEX order_gaps_of ON order_gaps USING btree (job_id);

CREATE TABLE unserved (
    queue text NOT NULL,
    lane  text COLLATE "C" NOT NULL,
    since timestamp with time zone NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT unserved_pkey PRIMARY KEY (queue, lane)
);
CREATE INDEX unserved_since ON unserved USING btree (since);

CREATE TABLE workers (
    worker_id  text NOT NULL,
    partitions json NOT NULL,
    slots      integer NOT NULL,
    rate       double precision NOT NULL,
    seen_at    timestamp with time zone NOT NULL DEFAULT now(),
    since      timestamp with time zone NOT NULL DEFAULT now(),
    job_types  jsonb,
    build      text,
    demands    jsonb,
    rooms      json,
    CONSTRAINT workers_pkey PRIMARY KEY (worker_id),
    CONSTRAINT workers_rate_check CHECK (rate >= 0::double precision),
    CONSTRAINT workers_slots_check CHECK (slots >= 0)
);

CREATE VIEW all_jobs AS
 SELECT jobs.job_id,
    jobs.trace_id,
    jobs.job_type,
    jobs.queue,
    jobs.payload,
    jobs.spec,
    jobs.status,
    jobs.version,
    jobs.attempt,
    jobs.retry_count,
    jobs.rank,
    jobs.due_at,
    jobs.callback_deadline_at,
    jobs.cancel_requested_at,
    jobs.command_seq,
    jobs.last_command,
    jobs.history,
    jobs.output,
    jobs.error_code,
    jobs.error_message,
    jobs.started_at,
    jobs.finished_at,
    jobs.created_at,
    jobs.updated_at,
    jobs.owner_id,
    jobs.lane,
    jobs.blocked_by,
    jobs.ordering_key,
    jobs.order_number,
    jobs.expires_at,
    jobs.deleted_at,
    jobs.fairness_key,
    jobs.build,
    jobs.inputs,
    jobs.flow_id,
    jobs.event
   FROM jobs
UNION ALL
 SELECT ended.job_id,
    ended.trace_id,
    ended.job_type,
    ended.queue,
    ended.payload,
    ended.spec,
    'COMPLETED'::text AS status,
    ended.version,
    ended.attempt,
    ended.retry_count,
    ended.finished_at AS rank,
    NULL::timestamp with time zone AS due_at,
    NULL::timestamp with time zone AS callback_deadline_at,
    NULL::timestamp with time zone AS cancel_requested_at,
    ended.command_seq,
    ended.last_command,
    ended.history,
    ended.output,
    NULL::text AS error_code,
    NULL::text AS error_message,
    ended.started_at,
    ended.finished_at,
    ended.created_at,
    ended.updated_at,
    ended.owner_id,
    NULL::text AS lane,
    NULL::text AS blocked_by,
    ended.ordering_key,
    ended.order_number,
    ended.expires_at,
    ended.deleted_at,
    ended.fairness_key,
    ended.build,
    ended.inputs,
    ended.flow_id,
    ended.event
   FROM ended;

CREATE VIEW attempts_out AS
 SELECT jobs.queue,
    jobs.job_type,
    jobs.owner_id,
    jobs.fairness_key,
    jobs.partition,
    jobs.worker_id,
    jobs.lease_expires_at,
    jobs.cancel_requested_at
   FROM jobs
  WHERE jobs.status = ANY (ARRAY['QUEUED'::text, 'RUNNING'::text])
UNION ALL
 SELECT members.queue,
    members.job_type,
    members.owner_id,
    members.fairness_key,
    members.partition,
    NULL::text AS worker_id,
    members.lease_expires_at,
    NULL::timestamp with time zone AS cancel_requested_at
   FROM members
  WHERE members.status = 'QUEUED'::text;

CREATE VIEW cohorts_out AS
 SELECT d.first_id,
    d.places,
    d."out",
    d.partitions,
    d.dispatched_at,
    d.lease_expires_at,
        CASE
            WHEN d.by_function IS NULL THEN 1
            ELSE 2
        END AS version,
    c.rank,
    c.queue,
    c.job_type,
    c.spec,
    c.owner_id,
    c.fairness_key,
    c.created_at,
    c.job_ids,
    c.trace_ids,
    c.payloads,
        CASE
            WHEN d.by_function IS NULL THEN c.history
            ELSE ((((c.history || ',{"at":'::text) || to_json(d.dispatched_at)::text) || ',"from":"PENDING","to":"QUEUED","by":"'::text) || d.by_function) || '","attempt":1}'::text
        END AS history
   FROM dispatched d
     CROSS JOIN LATERAL ( SELECT cohorts.first_id,
            cohorts.rank,
            cohorts.waiting,
            cohorts.queue,
            cohorts.job_type,
            cohorts.spec,
            cohorts.owner_id,
            cohorts.fairness_key,
            cohorts.created_at,
            cohorts.updated_at,
            cohorts.history,
            cohorts.job_ids,
            cohorts.trace_ids,
            cohorts.payloads,
            cohorts."out"
           FROM cohorts
          WHERE cohorts.first_id = d.first_id
         OFFSET 0) c;

CREATE VIEW ended_members AS
 SELECT e.block_id,
    e.places,
    place.place,
    1::bigint << place.place AS mask,
    encode(set_byte(uuid_send(e.block_id), 15, get_byte(uuid_send(e.block_id), 15) | (place.place << 1)), 'hex'::text)::uuid AS job_id,
    e.trace_ids[m.n] AS trace_id,
    e.job_type,
    e.queue,
    e.payloads[m.n] AS payload,
    e.spec,
    e.version,
    1 AS attempt,
    ((((((e.history || ',{"at":'::text) || to_json(e.ended_at)::text) || ',"from":"QUEUED","to":"COMPLETED","attempt":1,"by":"outcome","outcome":"completed"'::text) || COALESCE(',"workerId":'::text || to_json(e.worker_id)::text, ''::text)) || COALESCE(',"startedAt":'::text || replace(to_json((e.started_at[m.n] AT TIME ZONE 'UTC'::text))::text || 'Z'::text, '"Z'::text, 'Z"'::text), ''::text)) || COALESCE(',"finishedAt":'::text || replace(to_json((e.finished_at[m.n] AT TIME ZONE 'UTC'::text))::text || 'Z'::text, '"Z'::text, 'Z"'::text), ''::text)) || '}'::text AS history,
    e.outputs[m.n] AS output,
    e.started_at[m.n] AS started_at,
    e.ended_at AS finished_at,
    e.created_at,
    e.ended_at AS updated_at,
    e.owner_id,
    e.fairness_key
   FROM ended_cohorts e
     CROSS JOIN generate_series(0, 63) place(place)
     CROSS JOIN LATERAL ( SELECT 1 + bit_count((e.places & (~ ((- 1::bigint) << place.place)))::bit(64))::integer AS n) m
  WHERE (e.places & (1::bigint << place.place)) <> 0;

CREATE VIEW members AS
 SELECT c.first_id,
    c.rank,
    c.queue,
    c.job_type,
    c.spec,
    c.owner_id,
    c.fairness_key,
    c.created_at,
    m.job_id,
    m.trace_id,
    m.payload,
    m.place::integer AS place,
    1::bigint << (m.place - 1)::integer AS mask,
    place_of(m.job_id) AS in_block,
    'PENDING'::text AS status,
    1::bigint AS version,
    0 AS attempt,
    c.history,
    c.updated_at,
    NULL::bigint AS places,
    NULL::smallint AS partition,
    NULL::timestamp with time zone AS lease_expires_at,
    NULL::json AS output,
    NULL::timestamp with time zone AS started_at,
    NULL::timestamp with time zone AS finished_at
   FROM cohorts c
     CROSS JOIN LATERAL UNNEST(c.job_ids, c.trace_ids, c.payloads) WITH ORDINALITY m(job_id, trace_id, payload, place)
  WHERE (c.waiting & (1::bigint << (m.place - 1)::integer)) <> 0
UNION ALL
 SELECT d.first_id,
    d.rank,
    d.queue,
    d.job_type,
    d.spec,
    d.owner_id,
    d.fairness_key,
    d.created_at,
    m.job_id,
    m.trace_id,
    m.payload,
    m.place::integer AS place,
    1::bigint << (m.place - 1)::integer AS mask,
    place_of(m.job_id) AS in_block,
    'QUEUED'::text AS status,
    d.version,
    1 AS attempt,
    d.history,
    d.dispatched_at AS updated_at,
    d.places,
    d.partitions[(1 + bit_count((d.places & (~ ((- 1::bigint) << (m.place - 1)::integer)))::bit(64)))] AS partition,
    d.lease_expires_at,
    NULL::json AS output,
    NULL::timestamp with time zone AS started_at,
    NULL::timestamp with time zone AS finished_at
   FROM cohorts_out d
     CROSS JOIN LATERAL UNNEST(d.job_ids, d.trace_ids, d.payloads) WITH ORDINALITY m(job_id, trace_id, payload, place)
  WHERE (d."out" & (1::bigint << (m.place - 1)::integer)) <> 0
UNION ALL
 SELECT e.block_id AS first_id,
    e.finished_at AS rank,
    e.queue,
    e.job_type,
    e.spec,
    e.owner_id,
    e.fairness_key,
    e.created_at,
    e.job_id,
    e.trace_id,
    e.payload,
    NULL::integer AS place,
    e.mask,
    e.place AS in_block,
    'COMPLETED'::text AS status,
    e.version,
    e.attempt,
    e.history,
    e.updated_at,
    e.places,
    NULL::smallint AS partition,
    NULL::timestamp with time zone AS lease_expires_at,
    e.output,
    e.started_at,
    e.finished_at
   FROM ended_members e;

CREATE OR REPLACE FUNCTION best_cohorts(of_queue text, at_least timestamp with time zone, most integer)
 RETURNS SETOF uuid
 LANGUAGE sql
 STABLE
AS $function$
    WITH RECURSIVE best AS (
        (SELECT c.first_id, c.rank, bit_count(c.waiting::bit(64)) AS jobs FROM cohorts c
         WHERE c.queue = $1 AND c.waiting <> 0 AND c.rank >= $2
         ORDER BY c.rank, c.first_id
         LIMIT 1)
        UNION ALL
        SELECT next.first_id, next.rank, best.jobs + next.jobs
        FROM best
        CROSS JOIN LATERAL (
            SELECT c.first_id, c.rank, bit_count(c.waiting::bit(64)) AS jobs FROM cohorts c
            WHERE c.queue = $1 AND c.waiting <> 0 AND (c.rank, c.first_id) > (best.rank, best.first_id)
            ORDER BY c.rank, c.first_id
            LIMIT 1
        ) next
        WHERE best.jobs < $3
    )
    SELECT best.first_id FROM best
$function$
;

CREATE OR REPLACE FUNCTION block_of(id uuid)
 RETURNS uuid
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
RETURN (encode(set_byte(uuid_send(id), 15, (get_byte(uuid_send(id), 15) & 129)), 'hex'::text))::uuid
;

CREATE OR REPLACE FUNCTION history_with(history text, moves integer, entries text, n integer)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
RETURN (CASE WHEN ((moves + n) <= 100) THEN (history || ','::text) WHEN (n < 100) THEN (last_moves(history, (100 - n)) || ','::text) ELSE ''::text END || entries)
;

CREATE OR REPLACE FUNCTION job_is_possible(status text, attempt integer, due_at timestamp with time zone, callback_deadline_at timestamp with time zone, lease_expires_at timestamp with time zone, partition smallint, cancel_requested_at timestamp with time zone, finished_at timestamp with time zone, error_code text, queue text, retry_count smallint, lost_count smallint, version bigint, command_seq integer, moves smallint)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
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
END $function$
;

CREATE OR REPLACE FUNCTION last_moves(history text, most integer)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
AS $function$
    SELECT btrim(jsonb_path_query_array(('[' || $1 || ']')::jsonb, '$[last - $n to last]',
                                        jsonb_build_object('n', $2 - 1))::text, '[]')
$function$
;

CREATE OR REPLACE FUNCTION parents_of(inputs json)
 RETURNS json
 LANGUAGE sql
 STABLE
AS $function$
    SELECT json_agg(json_build_object(
        'name', parents.name, 'jobId', parents."jobId", 'attempt', parents.attempt,
        'output', CASE WHEN parents.bytes <= 524288 THEN parents.output END, 'outputBytes', parents.bytes))
    FROM (
        SELECT input.name, input."jobId", parent.attempt, parent.output,
               sum(octet_length(parent.output::text)) OVER () AS bytes
        FROM json_to_recordset($1) AS input (name text, "jobId" uuid)
        LEFT JOIN LATERAL (
            SELECT a.attempt, a.output FROM all_jobs a
            WHERE a.job_id = input."jobId" AND a.status = 'COMPLETED' AND a.deleted_at IS NULL
            UNION ALL
            SELECT e.attempt, e.output FROM ended_members e
            WHERE e.block_id = block_of(input."jobId") AND e.place = place_of(input."jobId")
        ) AS parent ON true
    ) AS parents
$function$
;

CREATE OR REPLACE FUNCTION place_of(id uuid)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
RETURN ((get_byte(uuid_send(id), 15) >> 1) & 63)
;

CREATE OR REPLACE FUNCTION status_of(id uuid)
 RETURNS SETOF text
 LANGUAGE sql
 STABLE
AS $function$
    SELECT j.status FROM all_jobs j WHERE j.job_id = $1
    UNION ALL
    SELECT 'COMPLETED' FROM ended_cohorts e WHERE e.block_id = block_of($1) AND e.places & (1::bigint << place_of($1)) <> 0
$function$
;

CREATE OR REPLACE FUNCTION suspects_free(of_queue text, silent_after interval)
 RETURNS bigint
 LANGUAGE sql
 STABLE
RETURN (WITH live AS (SELECT count(*) AS n FROM workers w WHERE ((w.seen_at > (now() - suspects_free.silent_after)) AND ((w.slots > 0) OR (w.rooms IS NOT NULL)) AND (json_array_length((w.partitions -> suspects_free.of_queue)) > 0))) SELECT (GREATEST(live.n, (1)::bigint) - (SELECT count(*) AS count FROM jobs j WHERE ((j.queue = suspects_free.of_queue) AND (j.lost_count >= 2) AND (j.status = ANY (ARRAY['PENDING'::text, 'QUEUED'::text, 'RUNNING'::text])) AND ((j.status <> 'RUNNING'::text) OR (j.started_at > (now() - '00:10:00'::interval))) AND ((j.status <> 'QUEUED'::text) OR (j.updated_at > (now() - '00:10:00'::interval)) OR (live.n = 0)) AND ((j.status <> 'PENDING'::text) OR (j.updated_at > (now() - '00:01:00'::interval)))))) FROM live)
;

CREATE OR REPLACE FUNCTION suspects_without_place(ids uuid[], queues text[], silent_after interval)
 RETURNS SETOF uuid
 LANGUAGE sql
 STABLE STRICT
BEGIN ATOMIC
 WITH suspects AS (
          SELECT suspect.job_id,
             suspect.queue,
             row_number() OVER (PARTITION BY suspect.queue ORDER BY suspect.nth) AS place
            FROM UNNEST(suspects_without_place.ids, suspects_without_place.queues) WITH ORDINALITY suspect(job_id, queue, nth)
         ), free AS MATERIALIZED (
          SELECT asked.queue,
             suspects_free(asked.queue, suspects_without_place.silent_after) AS places
            FROM ( SELECT DISTINCT suspects_1.queue
                    FROM suspects suspects_1) asked
         )
  SELECT suspects.job_id
    FROM (suspects
      JOIN free ON ((free.queue = suspects.queue)))
   WHERE (suspects.place > free.places);
END
;
