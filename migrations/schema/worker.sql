-- The database jobweaver_worker as its migrations leave it. Written by make generate.

CREATE TABLE blocks (
    block_id      uuid NOT NULL,
    attempt       integer NOT NULL,
    taken         bigint NOT NULL,
    workers       text[] NOT NULL DEFAULT '{}'::text[],
    shares        bigint[] NOT NULL DEFAULT '{}'::bigint[],
    moved         bigint NOT NULL DEFAULT 0,
    completed     bigint NOT NULL DEFAULT 0,
    cancel_wanted bigint NOT NULL DEFAULT 0,
    places        smallint[] NOT NULL DEFAULT '{}'::smallint[],
    started_at    timestamp with time zone[] NOT NULL DEFAULT '{}'::timestamp with time zone[],
    finished_at   timestamp with time zone[] NOT NULL DEFAULT '{}'::timestamp with time zone[],
    outputs       json[] NOT NULL DEFAULT '{}'::json[],
    CONSTRAINT blocks_pkey PRIMARY KEY (block_id, attempt),
    CONSTRAINT blocks_possible CHECK (attempt > 0 AND (((moved | completed) | cancel_wanted) & (~ taken)) = 0 AND (moved & completed) = 0 AND cardinality(workers) = cardinality(shares) AND cardinality(places) = bit_count(completed::bit(64)) AND cardinality(started_at) = cardinality(places) AND cardinality(finished_at) = cardinality(places) AND cardinality(outputs) = cardinality(places))
) WITH (fillfactor=40);
ALTER TABLE blocks ALTER outputs SET STORAGE EXTERNAL;

CREATE TABLE checkpoints (
    job_id   uuid NOT NULL,
    attempt  integer NOT NULL,
    number   bigint NOT NULL,
    data     json NOT NULL,
    saved_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT checkpoints_pkey PRIMARY KEY (job_id)
);

CREATE TABLE claims (
    worker_id text NOT NULL,
    number    bigint NOT NULL,
    job_ids   uuid[] NOT NULL,
    attempts  integer[] NOT NULL,
    trace_ids uuid[] NOT NULL,
    CONSTRAINT claims_pkey PRIMARY KEY (worker_id, number),
    CONSTRAINT claims_check CHECK (cardinality(job_ids) = cardinality(attempts))
);
ALTER TABLE claims ALTER attempts SET STORAGE EXTERNAL;
ALTER TABLE claims ALTER job_ids SET STORAGE EXTERNAL;
ALTER TABLE claims ALTER trace_ids SET STORAGE EXTERNAL;

CREATE TABLE execution_attempts (
    job_id              uuid NOT NULL,
    attempt             integer NOT NULL,
    trace_id            uuid NOT NULL,
    worker_id           text NOT NULL,
    timeout_ms          integer,
    started_at          timestamp with time zone,
    finished_at         timestamp with time zone,
    outcome             text,
    cancel_wanted       boolean NOT NULL DEFAULT false,
    output              json,
    error_code          text,
    error_message       text,
    retryable           boolean NOT NULL DEFAULT false,
    retry_after_ms      bigint NOT NULL DEFAULT 0,
    callback_timeout_ms bigint,
    CONSTRAINT execution_attempts_pkey PRIMARY KEY (job_id, attempt),
    CONSTRAINT execution_attempts_possible CHECK (
CASE
    WHEN attempt < 1 OR timeout_ms < 1 OR retry_after_ms < 0 THEN false
    WHEN outcome IS NULL THEN finished_at IS NULL AND output IS NULL AND callback_timeout_ms IS NULL
    WHEN finished_at IS NULL THEN false
    WHEN outcome = 'completed'::text THEN started_at IS NOT NULL AND callback_timeout_ms IS NULL
    WHEN output IS NOT NULL THEN false
    WHEN outcome = 'waiting'::text THEN started_at IS NOT NULL AND COALESCE(callback_timeout_ms > 0, false)
    WHEN callback_timeout_ms IS NOT NULL THEN false
    WHEN outcome = ANY (ARRAY['failed'::text, 'lost'::text]) THEN error_code IS NOT NULL
    ELSE outcome = ANY (ARRAY['interrupted'::text, 'cancelled'::text, 'snoozed'::text])
END)
) WITH (fillfactor=40);

CREATE TABLE installation_secrets (
    name   text NOT NULL,
    secret text NOT NULL,
    CONSTRAINT installation_secrets_pkey PRIMARY KEY (name)
);

CREATE TABLE workers (
    worker_id  text NOT NULL,
    queues     text[] NOT NULL,
    free       integer NOT NULL,
    started_at timestamp with time zone NOT NULL DEFAULT now(),
    seen_at    timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT workers_pkey PRIMARY KEY (worker_id),
    CONSTRAINT workers_free_check CHECK (free >= 0)
);

CREATE VIEW attempts AS
 SELECT execution_attempts.job_id,
    execution_attempts.attempt,
    execution_attempts.trace_id,
    execution_attempts.worker_id,
    execution_attempts.timeout_ms,
    execution_attempts.started_at,
    execution_attempts.finished_at,
    execution_attempts.outcome,
    execution_attempts.cancel_wanted,
    execution_attempts.output,
    execution_attempts.error_code,
    execution_attempts.error_message,
    execution_attempts.retryable,
    execution_attempts.retry_after_ms,
    execution_attempts.callback_timeout_ms
   FROM execution_attempts
UNION ALL
 SELECT encode(set_byte(uuid_send(b.block_id), 15, get_byte(uuid_send(b.block_id), 15) | (place.place << 1)), 'hex'::text)::uuid AS job_id,
    b.attempt,
    NULL::uuid AS trace_id,
    b.workers[( SELECT i.i
           FROM generate_subscripts(b.shares, 1) i(i)
          WHERE (b.shares[i.i] & (1::bigint << place.place)) <> 0)] AS worker_id,
    NULL::integer AS timeout_ms,
    b.started_at[done.n] AS started_at,
    b.finished_at[done.n] AS finished_at,
        CASE
            WHEN done.n IS NOT NULL THEN 'completed'::text
            ELSE NULL::text
        END AS outcome,
    (b.cancel_wanted & (1::bigint << place.place)) <> 0 AS cancel_wanted,
    b.outputs[done.n] AS output,
    NULL::text AS error_code,
    NULL::text AS error_message,
    false AS retryable,
    0 AS retry_after_ms,
    NULL::bigint AS callback_timeout_ms
   FROM blocks b
     CROSS JOIN generate_series(0, 63) place(place)
     CROSS JOIN LATERAL ( SELECT array_position(b.places, place.place::smallint) AS n) done
  WHERE ((b.taken & (~ b.moved)) & (1::bigint << place.place)) <> 0;

CREATE OR REPLACE FUNCTION block_of(id uuid)
 RETURNS uuid
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
RETURN (encode(set_byte(uuid_send(id), 15, (get_byte(uuid_send(id), 15) & 129)), 'hex'::text))::uuid
;

CREATE OR REPLACE FUNCTION index_of(workers text[], worker text)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN COALESCE(array_position(workers, worker), (cardinality(workers) + 1))
;

CREATE OR REPLACE FUNCTION last_of(block_id uuid)
 RETURNS uuid
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
RETURN (encode(set_byte(uuid_send(block_id), 15, (get_byte(uuid_send(block_id), 15) | 126)), 'hex'::text))::uuid
;

CREATE OR REPLACE FUNCTION place_of(id uuid)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
RETURN ((get_byte(uuid_send(id), 15) >> 1) & 63)
;

CREATE OR REPLACE FUNCTION share_of(workers text[], shares bigint[], worker text)
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN COALESCE((shares)[array_position(workers, worker)], (0)::bigint)
;
