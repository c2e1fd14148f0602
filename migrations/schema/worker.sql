-- The database jobweaver_worker as its migrations leave it. Written by make generate.

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
    CONSTRAINT claims_pkey PRIMARY KEY (worker_id, number),
    CONSTRAINT claims_check CHECK (cardinality(job_ids) = cardinality(attempts))
);
ALTER TABLE claims ALTER attempts SET STORAGE EXTERNAL;
ALTER TABLE claims ALTER job_ids SET STORAGE EXTERNAL;

CREATE TABLE execution_attempts (
    job_id              uuid NOT NULL,
    attempt             integer NOT NULL,
    trace_id            uuid NOT NULL,
    queue               text NOT NULL,
    worker_id           text NOT NULL,
    timeout_ms          integer NOT NULL,
    claimed_at          timestamp with time zone NOT NULL DEFAULT now(),
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
