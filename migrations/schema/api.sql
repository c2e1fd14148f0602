-- The database jobweaver_api as its migrations leave it. Written by make generate.

CREATE SEQUENCE control_versions INCREMENT BY 1 START WITH 1;

CREATE SEQUENCE order_numbers INCREMENT BY 16384 START WITH 16384;

CREATE TABLE alert_notices (
    alert_id  uuid NOT NULL,
    notice_id uuid NOT NULL,
    at        timestamp with time zone NOT NULL DEFAULT now(),
    state     text NOT NULL,
    failed    bigint NOT NULL,
    ended     bigint NOT NULL,
    job_id    uuid NOT NULL,
    CONSTRAINT alert_notices_pkey PRIMARY KEY (alert_id, notice_id),
    CONSTRAINT alert_notices_alert_id_fkey FOREIGN KEY (alert_id) REFERENCES alerts(alert_id) ON DELETE CASCADE,
    CONSTRAINT alert_notices_state_check CHECK (state = ANY (ARRAY['FIRING'::text, 'RESOLVED'::text, 'TEST'::text]))
);

CREATE TABLE alerts (
    alert_id       uuid NOT NULL,
    owner_id       text NOT NULL,
    name           text NOT NULL,
    job_type       text NOT NULL,
    queue          text NOT NULL,
    error_code     text NOT NULL,
    failures       integer NOT NULL,
    percent        integer NOT NULL,
    window_minutes integer NOT NULL,
    quiet_minutes  integer NOT NULL,
    destination    json NOT NULL,
    paused         boolean NOT NULL,
    created_at     timestamp with time zone NOT NULL DEFAULT now(),
    updated_at     timestamp with time zone NOT NULL DEFAULT now(),
    firing_since   timestamp with time zone,
    announced      boolean NOT NULL DEFAULT false,
    announced_at   timestamp with time zone,
    CONSTRAINT alerts_pkey PRIMARY KEY (alert_id),
    CONSTRAINT alerts_check CHECK (firing_since IS NOT NULL OR NOT announced),
    CONSTRAINT alerts_failures_check CHECK (failures > 0),
    CONSTRAINT alerts_name_check CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,99}$'::text),
    CONSTRAINT alerts_name_owner_id_key UNIQUE (name, owner_id),
    CONSTRAINT alerts_percent_check CHECK (percent >= 0 AND percent <= 100),
    CONSTRAINT alerts_quiet_minutes_check CHECK (quiet_minutes > 0),
    CONSTRAINT alerts_window_minutes_check CHECK (window_minutes > 0)
);
CREATE INDEX alerts_firing ON alerts USING btree (name, owner_id) WHERE (firing_since IS NOT NULL);
CREATE INDEX alerts_owned ON alerts USING btree (owner_id, name);

CREATE TABLE api_keys (
    key_id       text NOT NULL,
    owner_id     text NOT NULL,
    name         text NOT NULL,
    roles        text[] NOT NULL,
    secret_hash  bytea NOT NULL,
    created_at   timestamp with time zone NOT NULL DEFAULT now(),
    created_by   text NOT NULL,
    expires_at   timestamp with time zone,
    revoked_at   timestamp with time zone,
    last_used_at timestamp with time zone,
    work_types   text[] NOT NULL DEFAULT '{}'::text[],
    work_queues  text[] NOT NULL DEFAULT '{}'::text[],
    CONSTRAINT api_keys_pkey PRIMARY KEY (key_id),
    CONSTRAINT api_keys_roles_check CHECK (roles <@ '{submit,read,operate,work,admin}'::text[] AND cardinality(roles) > 0),
    CONSTRAINT api_keys_secret_hash_check CHECK (octet_length(secret_hash) = 32)
);
CREATE INDEX api_keys_of ON api_keys USING btree (owner_id, key_id);

CREATE TABLE attempt_logs (
    job_id      uuid NOT NULL,
    attempt     integer NOT NULL,
    first_line  integer NOT NULL,
    lines       json NOT NULL,
    received_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT attempt_logs_pkey PRIMARY KEY (job_id, attempt, first_line),
    CONSTRAINT attempt_logs_attempt_check CHECK (attempt > 0),
    CONSTRAINT attempt_logs_first_line_check CHECK (first_line >= 0)
);

CREATE TABLE audit_log (
    audit_id    bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    at          timestamp with time zone NOT NULL DEFAULT now(),
    owner_id    text NOT NULL,
    actor       text NOT NULL,
    action      text NOT NULL,
    resource    text NOT NULL DEFAULT ''::text,
    job_ids     uuid[] NOT NULL DEFAULT '{}'::uuid[],
    remote_addr text NOT NULL,
    user_agent  text NOT NULL,
    trace_id    uuid NOT NULL,
    details     json,
    CONSTRAINT audit_log_pkey PRIMARY KEY (audit_id)
);
CREATE INDEX audit_log_jobs ON audit_log USING gin (job_ids) WHERE (job_ids <> '{}'::uuid[]);
CREATE INDEX audit_log_of ON audit_log USING btree (owner_id, audit_id);

CREATE TABLE batch_deletions (
    batch_id uuid NOT NULL,
    status   text NOT NULL,
    jobs     bigint NOT NULL,
    CONSTRAINT batch_deletions_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES batches(batch_id) ON DELETE CASCADE,
    CONSTRAINT batch_deletions_jobs_check CHECK (jobs > 0),
    CONSTRAINT batch_deletions_status_check CHECK (status = ANY (ARRAY['COMPLETED'::text, 'FAILED'::text, 'CANCELLED'::text]))
);
CREATE INDEX batch_deletions_of ON batch_deletions USING btree (batch_id);

CREATE TABLE batches (
    batch_id        uuid NOT NULL,
    owner_id        text NOT NULL,
    name            text,
    on_complete     json,
    on_failure      json,
    idempotency_key text,
    request_hash    bytea,
    created_at      timestamp with time zone NOT NULL DEFAULT now(),
    expires_at      timestamp with time zone,
    status          text NOT NULL DEFAULT 'OPEN'::text,
    closed_at       timestamp with time zone,
    expired_at      timestamp with time zone,
    finished_at     timestamp with time zone,
    round           integer NOT NULL DEFAULT 0,
    operation_id    uuid,
    counts          json,
    follow_up_id    uuid,
    follow_up_error text,
    graph           json,
    retry           json,
    run             integer NOT NULL DEFAULT 1,
    earlier_runs    json,
    CONSTRAINT batches_pkey PRIMARY KEY (batch_id),
    CONSTRAINT batches_check CHECK ((idempotency_key IS NULL) = (request_hash IS NULL)),
    CONSTRAINT batches_check1 CHECK ((closed_at IS NULL) = (status = 'OPEN'::text)),
    CONSTRAINT batches_check2 CHECK ((finished_at IS NULL) = (status = ANY (ARRAY['OPEN'::text, 'RUNNING'::text])) AND (finished_at IS NULL) = (counts IS NULL)),
    CONSTRAINT batches_check3 CHECK (finished_at IS NOT NULL OR follow_up_id IS NULL AND follow_up_error IS NULL),
    CONSTRAINT batches_status_check CHECK (status = ANY (ARRAY['OPEN'::text, 'RUNNING'::text, 'COMPLETED'::text, 'FAILED'::text, 'CANCELLED'::text, 'EXPIRED'::text]))
);
CREATE UNIQUE INDEX batches_idempotency ON batches USING btree (owner_id, idempotency_key) WHERE (idempotency_key IS NOT NULL);
CREATE INDEX batches_of_owner ON batches USING btree (owner_id, batch_id);
CREATE INDEX batches_watched ON batches USING btree (batch_id) WHERE ((finished_at IS NULL) AND ((closed_at IS NOT NULL) OR (expires_at IS NOT NULL)));

CREATE TABLE callbacks (
    job_id      uuid NOT NULL,
    attempt     integer NOT NULL,
    outcome     text NOT NULL,
    output      json,
    error_code  text NOT NULL DEFAULT ''::text,
    message     text NOT NULL DEFAULT ''::text,
    retryable   boolean NOT NULL DEFAULT true,
    body_hash   bytea NOT NULL,
    received_at timestamp with time zone NOT NULL DEFAULT now(),
    answered_at timestamp with time zone,
    CONSTRAINT callbacks_pkey PRIMARY KEY (job_id, attempt),
    CONSTRAINT callbacks_attempt_check CHECK (attempt > 0),
    CONSTRAINT callbacks_check CHECK (outcome = 'failed'::text OR error_code = ''::text AND message = ''::text),
    CONSTRAINT callbacks_outcome_check CHECK (outcome = ANY (ARRAY['completed'::text, 'failed'::text]))
);
CREATE INDEX callbacks_unanswered ON callbacks USING btree (job_id) WHERE (answered_at IS NULL);

CREATE TABLE commands (
    job_id       uuid NOT NULL,
    number       integer NOT NULL,
    command      text NOT NULL,
    by_whom      text NOT NULL,
    created_at   timestamp with time zone NOT NULL DEFAULT now(),
    run_at       timestamp with time zone,
    operation_id uuid,
    change       json,
    change_hash  bytea,
    CONSTRAINT commands_pkey PRIMARY KEY (job_id),
    CONSTRAINT commands_command_check CHECK ((command = ANY (ARRAY['cancel'::text, 'retry'::text, 'reschedule'::text, 'delete'::text, 'change'::text])) AND (command = 'reschedule'::text) = (run_at IS NOT NULL) AND (command = 'change'::text) = (change IS NOT NULL) AND (command = 'change'::text) = (change_hash IS NOT NULL)),
    CONSTRAINT commands_number_check CHECK (number > 0)
);
CREATE INDEX commands_of_operation ON commands USING btree (operation_id) WHERE (operation_id IS NOT NULL);

CREATE TRIGGER commands_change AFTER DELETE ON commands FOR EACH ROW WHEN (old.command = 'change'::text) EXECUTE FUNCTION apply_change();

CREATE TABLE controls (
    kind                   text NOT NULL,
    name                   text NOT NULL,
    version                bigint NOT NULL,
    paused                 boolean NOT NULL,
    max_running            integer,
    starts_per_second      double precision,
    applied_version        bigint NOT NULL DEFAULT 0,
    updated_at             timestamp with time zone NOT NULL DEFAULT now(),
    updated_by             text NOT NULL,
    least_paused           boolean NOT NULL DEFAULT false,
    most_running           integer,
    most_starts_per_second double precision,
    weight                 smallint,
    workers                text,
    CONSTRAINT controls_pkey PRIMARY KEY (kind, name),
    CONSTRAINT controls_check CHECK (weight IS NULL OR kind = 'fairnessKey'::text AND weight >= 2 AND weight <= 100),
    CONSTRAINT controls_kind_check CHECK (kind = ANY (ARRAY['queue'::text, 'type'::text, 'owner'::text, 'fairnessKey'::text, 'worker'::text, 'createdQueue'::text])),
    CONSTRAINT controls_max_running_check CHECK (max_running >= 0),
    CONSTRAINT controls_name_check CHECK (length(name) >= 1 AND length(name) <= 255),
    CONSTRAINT controls_starts_per_second_check CHECK (starts_per_second > 0::double precision),
    CONSTRAINT controls_workers_check CHECK (workers = ANY (ARRAY['runjob'::text, 'pull'::text]))
);

CREATE TABLE deleted_jobs (
    job_id     uuid NOT NULL,
    deleted_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT deleted_jobs_pkey PRIMARY KEY (job_id)
);

CREATE TABLE deliveries (
    job_id      uuid NOT NULL,
    version     bigint NOT NULL,
    owner_id    text NOT NULL,
    job_status  text NOT NULL,
    url         text NOT NULL,
    host        text COLLATE "C" NOT NULL GENERATED ALWAYS AS (COALESCE(lower("substring"(url, '^[^:]*://([^/?#]+)'::text)), lower(url))) STORED,
    job         json NOT NULL,
    snapshot    text NOT NULL,
    status      text NOT NULL DEFAULT 'PENDING'::text,
    tries       integer NOT NULL DEFAULT 0,
    next_at     timestamp with time zone DEFAULT now(),
    last_try_at timestamp with time zone,
    last_answer integer,
    last_error  text NOT NULL DEFAULT ''::text,
    created_at  timestamp with time zone NOT NULL DEFAULT now(),
    finished_at timestamp with time zone,
    CONSTRAINT deliveries_pkey PRIMARY KEY (job_id, version),
    CONSTRAINT deliveries_check CHECK ((status = 'PENDING'::text) = (next_at IS NOT NULL)),
    CONSTRAINT deliveries_check1 CHECK ((status = 'PENDING'::text) = (finished_at IS NULL)),
    CONSTRAINT deliveries_job_status_check CHECK (job_status = ANY (ARRAY['COMPLETED'::text, 'FAILED'::text, 'CANCELLED'::text])),
    CONSTRAINT deliveries_status_check CHECK (status = ANY (ARRAY['PENDING'::text, 'DELIVERED'::text, 'FAILED'::text])),
    CONSTRAINT deliveries_tries_check CHECK (tries >= 0)
);
CREATE INDEX deliveries_by_status ON deliveries USING btree (status, job_id, version);
CREATE INDEX deliveries_due ON deliveries USING btree (next_at) WHERE (status = 'PENDING'::text);
CREATE INDEX deliveries_due_by_host ON deliveries USING btree (host, next_at) WHERE (status = 'PENDING'::text);
CREATE INDEX deliveries_due_by_owner ON deliveries USING btree (owner_id, host, next_at) WHERE (status = 'PENDING'::text);
CREATE INDEX deliveries_finished ON deliveries USING btree (finished_at) WHERE (finished_at IS NOT NULL);
CREATE INDEX deliveries_owned ON deliveries USING btree (owner_id, status, job_id, version) WHERE (owner_id <> ''::text);

CREATE TABLE events (
    event_number uuid NOT NULL,
    owner_id     text NOT NULL,
    source       text NOT NULL,
    event_id     text NOT NULL,
    event_type   text NOT NULL,
    event        json NOT NULL,
    keys         bigint[] NOT NULL,
    received_at  timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT events_pkey PRIMARY KEY (event_number),
    CONSTRAINT events_owner_id_source_event_id_key UNIQUE (owner_id, source, event_id)
);
CREATE INDEX events_by_key ON events USING gin (keys);
CREATE INDEX events_of_type ON events USING btree (owner_id, event_type, event_number);

CREATE TABLE failure_entries (
    id         bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    owner_id   text NOT NULL,
    job_type   text NOT NULL,
    error_code text NOT NULL,
    kept       integer NOT NULL,
    failed     integer NOT NULL,
    first_at   timestamp with time zone,
    last_at    timestamp with time zone,
    last_id    uuid,
    CONSTRAINT failure_entries_pkey PRIMARY KEY (id),
    CONSTRAINT failure_entries_check CHECK ((failed > 0) = (first_at IS NOT NULL) AND (failed > 0) = (last_at IS NOT NULL) AND (failed > 0) = (last_id IS NOT NULL))
);

CREATE TABLE failures (
    everyone   boolean NOT NULL,
    owner_id   text NOT NULL,
    job_type   text NOT NULL,
    error_code text NOT NULL,
    kept       bigint NOT NULL,
    first_at   timestamp with time zone NOT NULL,
    last_at    timestamp with time zone NOT NULL,
    last_id    uuid NOT NULL,
    hours      json NOT NULL,
    CONSTRAINT failures_pkey PRIMARY KEY (everyone, owner_id, job_type, error_code),
    CONSTRAINT failures_check CHECK (NOT everyone OR owner_id = ''::text)
);
CREATE INDEX failures_aged ON failures USING btree (last_at) WHERE (kept <= 0);
CREATE INDEX failures_largest ON failures USING btree (everyone, owner_id, kept) WHERE (kept > 0);

CREATE TABLE job_counts (
    id     boolean NOT NULL DEFAULT true,
    as_of  timestamp with time zone NOT NULL,
    took   interval NOT NULL,
    counts json NOT NULL,
    ended  json NOT NULL,
    CONSTRAINT job_counts_pkey PRIMARY KEY (id),
    CONSTRAINT job_counts_id_check CHECK (id)
);

CREATE TABLE job_types (
    owner_id   text NOT NULL,
    name       text NOT NULL,
    definition json,
    updated_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT job_types_pkey PRIMARY KEY (owner_id, name)
);

CREATE TABLE jobs (
    job_id              uuid NOT NULL,
    owner_id            text NOT NULL DEFAULT ''::text,
    job_type            text NOT NULL,
    queue               text NOT NULL,
    payload             json NOT NULL,
    spec                json NOT NULL,
    run_at              timestamp with time zone,
    tags                text[] NOT NULL DEFAULT '{}'::text[],
    trace_id            uuid NOT NULL,
    created_at          timestamp with time zone NOT NULL DEFAULT now(),
    idempotency_key     text,
    request_hash        bytea,
    event_source        text,
    event_id            text,
    command_seq         integer NOT NULL DEFAULT 0,
    cancel_requested_at timestamp with time zone,
    status              text NOT NULL,
    version             bigint NOT NULL DEFAULT 0,
    attempt             integer NOT NULL DEFAULT 0,
    retry_count         integer NOT NULL DEFAULT 0,
    updated_at          timestamp with time zone NOT NULL DEFAULT now(),
    snapshot            text,
    progress            json,
    expires_at          timestamp with time zone,
    ordering_key        text,
    order_number        bigint,
    order_after         uuid,
    after_ids           uuid[],
    runs_anyway         boolean,
    ended_as            text,
    callback_url        text,
    event_owner         text NOT NULL DEFAULT ''::text,
    error_code          text,
    run_again_of        uuid,
    fairness_key        text,
    batch_id            uuid,
    policies            json,
    after_conditions    text[],
    inputs              json,
    held                boolean,
    released_at         timestamp with time zone,
    for_each            json,
    elements            integer,
    fan_out_id          uuid,
    element             integer,
    event               json,
    waits               boolean,
    CONSTRAINT jobs_pkey PRIMARY KEY (job_id),
    CONSTRAINT jobs_pairs CHECK ((version = 0) = (snapshot IS NULL) AND (idempotency_key IS NULL) = (request_hash IS NULL) AND (event_source IS NULL) = (event_id IS NULL))
) WITH (fillfactor=100);
CREATE UNIQUE INDEX jobs_debounced ON jobs USING btree (owner_id, (((policies -> 'debounce'::text) ->> 'key'::text))) WHERE (held AND (version = 0));
CREATE UNIQUE INDEX jobs_elements ON jobs USING btree (fan_out_id, element) WHERE (fan_out_id IS NOT NULL);
CREATE INDEX jobs_elements_live ON jobs USING btree (fan_out_id) WHERE ((fan_out_id IS NOT NULL) AND (status <> ALL (ARRAY['COMPLETED'::text, 'FAILED'::text, 'CANCELLED'::text])));
CREATE UNIQUE INDEX jobs_event ON jobs USING btree (event_owner, event_source, event_id) WHERE (event_id IS NOT NULL);
CREATE INDEX jobs_fan_outs ON jobs USING btree (job_id) WHERE ((for_each IS NOT NULL) AND (status <> ALL (ARRAY['COMPLETED'::text, 'FAILED'::text, 'CANCELLED'::text])));
CREATE INDEX jobs_held ON jobs USING btree (run_at) WHERE held;
CREATE UNIQUE INDEX jobs_idempotency ON jobs USING btree (owner_id, idempotency_key) WHERE (idempotency_key IS NOT NULL);
CREATE INDEX jobs_of_batch ON jobs USING btree (batch_id, status, job_id) WHERE (batch_id IS NOT NULL);
CREATE INDEX jobs_of_error ON jobs USING btree (error_code, job_id) WHERE (error_code IS NOT NULL);
CREATE INDEX jobs_of_key ON jobs USING btree (ordering_key, job_id) WHERE (ordering_key IS NOT NULL);
CREATE INDEX jobs_of_owners_error ON jobs USING btree (owner_id, error_code, job_id) WHERE ((error_code IS NOT NULL) AND (owner_id <> ''::text));
CREATE INDEX jobs_of_owners_key ON jobs USING btree (owner_id, ordering_key, job_id) WHERE ((ordering_key IS NOT NULL) AND (owner_id <> ''::text));
CREATE INDEX jobs_of_trace ON jobs USING btree (trace_id, job_id) WHERE ((trace_id >= job_id) OR (SUBSTRING(uuid_send(trace_id) FROM 1 FOR 5) <> SUBSTRING(uuid_send(job_id) FROM 1 FOR 5)));
CREATE INDEX jobs_ordered ON jobs USING btree (ordering_key, owner_id, order_number) WHERE ((ordering_key IS NOT NULL) AND (status <> ALL (ARRAY['COMPLETED'::text, 'FAILED'::text, 'CANCELLED'::text])));
CREATE INDEX jobs_owned ON jobs USING btree (owner_id, COALESCE(shelf_of(status, version), (10)::smallint), job_id) WHERE (owner_id <> ''::text);
CREATE INDEX jobs_run_again ON jobs USING btree (run_again_of, job_id) WHERE (run_again_of IS NOT NULL);
CREATE INDEX jobs_shelved ON jobs USING btree (shelf_of(status, version), job_id) WHERE (shelf_of(status, version) IS NOT NULL);
CREATE INDEX jobs_throttled ON jobs USING btree (owner_id, (((policies -> 'throttle'::text) ->> 'key'::text)), COALESCE(run_at, created_at)) WHERE ((policies -> 'throttle'::text) IS NOT NULL);
CREATE INDEX jobs_tied ON jobs USING btree (owner_id, job_id) WHERE (after_ids IS NOT NULL);
CREATE INDEX jobs_unheld ON jobs USING btree (job_id) WHERE (NOT held);
CREATE INDEX jobs_unique ON jobs USING btree (owner_id, (((policies -> 'unique'::text) ->> 'key'::text)), created_at) WHERE ((policies -> 'unique'::text) IS NOT NULL);
CREATE INDEX jobs_unique_active ON jobs USING btree (owner_id, (((policies -> 'unique'::text) ->> 'key'::text))) WHERE (((policies -> 'unique'::text) IS NOT NULL) AND (status <> ALL (ARRAY['COMPLETED'::text, 'FAILED'::text, 'CANCELLED'::text])));

CREATE TRIGGER jobs_deleted AFTER DELETE ON jobs REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION tally_deleted();

CREATE TRIGGER jobs_deleted_with AFTER DELETE ON jobs REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION delete_what_jobs_have();

CREATE TABLE merged_submits (
    owner_id     text NOT NULL,
    identity     bytea NOT NULL,
    request_hash bytea,
    job_id       uuid NOT NULL,
    CONSTRAINT merged_submits_pkey PRIMARY KEY (owner_id, identity)
);
CREATE INDEX merged_submits_of_job ON merged_submits USING btree (job_id);

CREATE TABLE operation_answers (
    operation_id uuid NOT NULL,
    applied      bigint NOT NULL,
    refused_id   uuid,
    reason       text,
    CONSTRAINT operation_answers_check CHECK ((refused_id IS NULL) = (reason IS NULL) AND (refused_id IS NULL) = (applied > 0))
);
CREATE INDEX operation_answers_of ON operation_answers USING btree (operation_id);

CREATE TABLE operation_skips (
    operation_id uuid NOT NULL,
    job_id       uuid NOT NULL,
    reason       text NOT NULL,
    CONSTRAINT operation_skips_pkey PRIMARY KEY (operation_id, job_id),
    CONSTRAINT operation_skips_operation_id_fkey FOREIGN KEY (operation_id) REFERENCES operations(operation_id) ON DELETE CASCADE
);

CREATE TABLE operations (
    operation_id    uuid NOT NULL,
    command         text NOT NULL,
    run_at          timestamp with time zone,
    by_whom         text NOT NULL,
    filter          json,
    job_ids         uuid[],
    idempotency_key text,
    request_hash    bytea,
    created_at      timestamp with time zone NOT NULL DEFAULT now(),
    status          text NOT NULL DEFAULT 'RUNNING'::text,
    updated_at      timestamp with time zone NOT NULL DEFAULT now(),
    finished_at     timestamp with time zone,
    after_id        uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000'::uuid,
    walked          boolean NOT NULL DEFAULT false,
    matched         bigint NOT NULL DEFAULT 0,
    asked           bigint NOT NULL DEFAULT 0,
    applied         bigint NOT NULL DEFAULT 0,
    refused         bigint NOT NULL DEFAULT 0,
    skipped         bigint NOT NULL DEFAULT 0,
    reasons         json NOT NULL DEFAULT '{}'::json,
    owner_id        text,
    CONSTRAINT operations_pkey PRIMARY KEY (operation_id),
    CONSTRAINT operations_check CHECK ((command = 'reschedule'::text) = (run_at IS NOT NULL)),
    CONSTRAINT operations_check1 CHECK ((filter IS NULL) <> (job_ids IS NULL)),
    CONSTRAINT operations_check2 CHECK ((idempotency_key IS NULL) = (request_hash IS NULL)),
    CONSTRAINT operations_check3 CHECK ((finished_at IS NULL) = (status = ANY (ARRAY['RUNNING'::text, 'ABORTING'::text]))),
    CONSTRAINT operations_check4 CHECK (matched = (asked + skipped) AND asked >= (applied + refused)),
    CONSTRAINT operations_command_check CHECK (command = ANY (ARRAY['cancel'::text, 'retry'::text, 'reschedule'::text, 'delete'::text])),
    CONSTRAINT operations_status_check CHECK (status = ANY (ARRAY['RUNNING'::text, 'ABORTING'::text, 'ABORTED'::text, 'COMPLETED'::text]))
);
CREATE UNIQUE INDEX operations_idempotency ON operations USING btree (owner_id, idempotency_key) NULLS NOT DISTINCT WHERE (idempotency_key IS NOT NULL);
CREATE INDEX operations_owned ON operations USING btree (owner_id, operation_id) WHERE (owner_id IS NOT NULL);
CREATE INDEX operations_unfinished ON operations USING btree (operation_id) WHERE (finished_at IS NULL);

CREATE TABLE owner_job_counts (
    owner_id text NOT NULL,
    counts   text NOT NULL,
    ended    text NOT NULL DEFAULT '[]'::text,
    CONSTRAINT owner_job_counts_pkey PRIMARY KEY (owner_id)
);

CREATE TABLE queues (
    name        text NOT NULL,
    workers     text NOT NULL,
    state       text NOT NULL DEFAULT 'ACTIVE'::text,
    created_at  timestamp with time zone NOT NULL DEFAULT now(),
    created_by  text NOT NULL,
    removing_at timestamp with time zone,
    removed_at  timestamp with time zone,
    CONSTRAINT queues_pkey PRIMARY KEY (name),
    CONSTRAINT queues_check CHECK ((removing_at IS NULL) = (state = 'ACTIVE'::text) AND (removed_at IS NULL) = (state <> 'REMOVED'::text)),
    CONSTRAINT queues_name_check CHECK (name ~ '^[a-z0-9-]{1,63}$'::text),
    CONSTRAINT queues_state_check CHECK (state = ANY (ARRAY['ACTIVE'::text, 'REMOVING'::text, 'REMOVED'::text])),
    CONSTRAINT queues_workers_check CHECK (workers = ANY (ARRAY['runjob'::text, 'pull'::text]))
);

CREATE TABLE rejected_records (
    rejected_number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    rejected_id     uuid NOT NULL,
    function        text NOT NULL,
    topic           text NOT NULL,
    partition       integer,
    record_offset   bigint,
    key             bytea,
    headers         json NOT NULL,
    value           bytea,
    bytes           integer NOT NULL,
    whole           boolean NOT NULL,
    truncated       boolean NOT NULL,
    reason          text NOT NULL,
    trace_id        uuid,
    recorded_at     timestamp with time zone,
    rejected_at     timestamp with time zone NOT NULL,
    redriven_at     timestamp with time zone,
    redriven_by     text,
    CONSTRAINT rejected_records_pkey PRIMARY KEY (rejected_number),
    CONSTRAINT rejected_records_check CHECK ((partition IS NULL) = (record_offset IS NULL)),
    CONSTRAINT rejected_records_check1 CHECK ((redriven_at IS NULL) = (redriven_by IS NULL)),
    CONSTRAINT rejected_records_check2 CHECK (NOT (whole AND truncated)),
    CONSTRAINT rejected_records_rejected_id_key UNIQUE (rejected_id)
);
CREATE INDEX rejected_records_aged ON rejected_records USING btree (rejected_at);

CREATE TABLE replaced_jobs (
    batch_id uuid NOT NULL,
    job_id   uuid NOT NULL,
    CONSTRAINT replaced_jobs_pkey PRIMARY KEY (batch_id, job_id)
);

CREATE TABLE schedule_cancels (
    job_id uuid NOT NULL,
    CONSTRAINT schedule_cancels_pkey PRIMARY KEY (job_id)
);

CREATE TABLE schedule_ticks (
    schedule_id uuid NOT NULL,
    at          timestamp with time zone NOT NULL,
    outcome     text NOT NULL,
    reason      text NOT NULL DEFAULT ''::text,
    job_id      uuid,
    recorded_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT schedule_ticks_pkey PRIMARY KEY (schedule_id, at),
    CONSTRAINT schedule_ticks_check CHECK ((outcome = 'fired'::text) = (job_id IS NOT NULL)),
    CONSTRAINT schedule_ticks_outcome_check CHECK (outcome = ANY (ARRAY['fired'::text, 'skipped'::text])),
    CONSTRAINT schedule_ticks_schedule_id_fkey FOREIGN KEY (schedule_id) REFERENCES schedules(schedule_id) ON DELETE CASCADE
);

CREATE TABLE schedules (
    schedule_id uuid NOT NULL,
    owner_id    text NOT NULL,
    name        text NOT NULL,
    cron        text NOT NULL,
    time_zone   text NOT NULL,
    anchor_at   timestamp with time zone NOT NULL,
    job         json NOT NULL,
    overlap     text NOT NULL,
    missed      text NOT NULL,
    paused      boolean NOT NULL,
    start_at    timestamp with time zone,
    end_at      timestamp with time zone,
    next_at     timestamp with time zone,
    last_at     timestamp with time zone,
    last_job_id uuid,
    created_at  timestamp with time zone NOT NULL DEFAULT now(),
    updated_at  timestamp with time zone NOT NULL DEFAULT now(),
    defined_by  text,
    CONSTRAINT schedules_pkey PRIMARY KEY (schedule_id),
    CONSTRAINT schedules_missed_check CHECK (missed = ANY (ARRAY['skip'::text, 'one'::text, 'all'::text])),
    CONSTRAINT schedules_name_check CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,99}$'::text),
    CONSTRAINT schedules_name_owner_id_key UNIQUE (name, owner_id),
    CONSTRAINT schedules_overlap_check CHECK (overlap = ANY (ARRAY['allow'::text, 'skip'::text, 'cancel'::text]))
);
CREATE INDEX schedules_due ON schedules USING btree (next_at) WHERE ((next_at IS NOT NULL) AND (NOT paused));
CREATE INDEX schedules_owned ON schedules USING btree (owner_id);

CREATE TABLE steps (
    job_id   uuid NOT NULL,
    name     text NOT NULL,
    attempt  integer NOT NULL,
    saved_at timestamp with time zone NOT NULL DEFAULT now(),
    until_at timestamp with time zone,
    took_ms  bigint,
    bytes    integer NOT NULL,
    result   text NOT NULL,
    CONSTRAINT steps_pkey PRIMARY KEY (job_id, name)
);

CREATE TABLE tallies (
    grain       text NOT NULL,
    at          timestamp with time zone NOT NULL,
    queue       text NOT NULL,
    job_type    text NOT NULL,
    what        text NOT NULL,
    n           bigint NOT NULL,
    kept        bigint NOT NULL,
    waited      bytea NOT NULL DEFAULT '\x'::bytea,
    ran         bytea NOT NULL DEFAULT '\x'::bytea,
    took        bytea NOT NULL DEFAULT '\x'::bytea,
    everyone    boolean NOT NULL,
    owner_id    text NOT NULL,
    error_codes json NOT NULL DEFAULT '{}'::json,
    CONSTRAINT tallies_pkey PRIMARY KEY (everyone, owner_id, grain, at, queue, job_type, what),
    CONSTRAINT tallies_check CHECK (NOT everyone OR owner_id = ''::text),
    CONSTRAINT tallies_grain_check CHECK (grain = ANY (ARRAY['minute'::text, 'hour'::text, 'day'::text, 'ever'::text]))
);
CREATE INDEX tallies_aged ON tallies USING btree (grain, at);

CREATE TABLE tally_entries (
    id          bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    at          timestamp with time zone NOT NULL DEFAULT now(),
    queue       text NOT NULL,
    job_type    text NOT NULL,
    what        text NOT NULL,
    n           integer NOT NULL,
    kept        integer NOT NULL,
    times       integer[] NOT NULL DEFAULT '{}'::integer[],
    owner_id    text NOT NULL DEFAULT ''::text,
    error_codes text[] NOT NULL DEFAULT '{}'::text[],
    CONSTRAINT tally_entries_pkey PRIMARY KEY (id),
    CONSTRAINT tally_entries_what_check CHECK (what = ANY (ARRAY['ACCEPTED'::text, 'COMPLETED'::text, 'FAILED'::text, 'CANCELLED'::text]))
);

CREATE TABLE waits (
    job_id       uuid NOT NULL,
    name         text NOT NULL,
    owner_id     text NOT NULL,
    status       text NOT NULL DEFAULT 'OPEN'::text,
    attempt      integer NOT NULL,
    group_name   text,
    created_at   timestamp with time zone NOT NULL DEFAULT now(),
    until_at     timestamp with time zone,
    done_at      timestamp with time zone,
    look_at      timestamp with time zone,
    event_type   text,
    match        text,
    keys         bigint[],
    first_key    bigint,
    event_number uuid,
    run          integer NOT NULL DEFAULT 0,
    child        json,
    child_end    text,
    CONSTRAINT waits_pkey PRIMARY KEY (job_id, name),
    CONSTRAINT waits_possible CHECK ((event_type IS NULL) = (first_key IS NULL) AND (event_type IS NOT NULL OR run > 0)),
    CONSTRAINT waits_status_check CHECK (status = ANY (ARRAY['OPEN'::text, 'DONE'::text, 'TIMED_OUT'::text, 'CLOSED'::text]))
);
CREATE INDEX waits_of_event ON waits USING btree (event_number) WHERE (event_number IS NOT NULL);
CREATE INDEX waits_open ON waits USING btree (owner_id, event_type, first_key) WHERE ((status = 'OPEN'::text) AND (event_type IS NOT NULL));
CREATE INDEX waits_to_look_at ON waits USING btree (look_at) WHERE (look_at IS NOT NULL);

CREATE TABLE webhook_ids (
    message_hash bytea NOT NULL,
    seen_at      timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT webhook_ids_pkey PRIMARY KEY (message_hash)
);
CREATE INDEX webhook_ids_seen ON webhook_ids USING btree (seen_at);

CREATE TABLE workers (
    worker_id text NOT NULL,
    seen_at   timestamp with time zone NOT NULL DEFAULT now(),
    beat      json NOT NULL,
    CONSTRAINT workers_pkey PRIMARY KEY (worker_id)
);

CREATE OR REPLACE FUNCTION api_keys_forget(owner text)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
    forgotten bigint;
BEGIN
    DELETE FROM api_keys
    WHERE owner_id = owner AND least(revoked_at, expires_at) < now() - interval '30 days' AND created_by <> 'bootstrap';
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    RETURN forgotten;
END $function$
;

CREATE OR REPLACE FUNCTION apply_change()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
    applied text := format('"lastCommand":{"number":%s,"command":"change","applied":true}}', old.number);
BEGIN
    UPDATE jobs SET
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
END $function$
;

CREATE OR REPLACE FUNCTION attempt_is_over(n integer, status text, version bigint, attempt integer)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
RETURN ((version > 0) AND ((attempt > n) OR ((attempt = n) AND (status <> ALL (ARRAY['QUEUED'::text, 'RUNNING'::text, 'WAITING'::text])))))
;

CREATE OR REPLACE FUNCTION audit_forget(age interval, max_entries integer)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
    until timestamptz := now() - age;
    forgotten bigint;
BEGIN
    IF until IS NULL OR until > now() - interval '720 hours' THEN
        RAISE insufficient_privilege USING MESSAGE = 'the audit log keeps entries for 30 days at least';
    END IF;
    DELETE FROM audit_log AS entry
    WHERE entry.audit_id IN (SELECT oldest.audit_id FROM audit_log AS oldest ORDER BY oldest.audit_id LIMIT max_entries)
        AND entry.at < until;
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    RETURN forgotten;
END $function$
;

CREATE OR REPLACE FUNCTION delete_what_jobs_have()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
    ids uuid[] := ARRAY(SELECT job_id FROM gone ORDER BY job_id);
BEGIN
    DELETE FROM commands WHERE job_id = ANY (ids);
    DELETE FROM callbacks WHERE job_id = ANY (ids);
    DELETE FROM merged_submits WHERE job_id = ANY (ids);
    DELETE FROM waits WHERE job_id = ANY (ids);
    DELETE FROM steps WHERE job_id = ANY (ids);
    DELETE FROM attempt_logs WHERE job_id = ANY (ids);
    DELETE FROM deliveries
    WHERE job_id = ANY (ARRAY(SELECT job_id FROM gone WHERE callback_url IS NOT NULL)) AND status <> 'PENDING';
    INSERT INTO batch_deletions (batch_id, status, jobs)
    SELECT gone.batch_id, CASE WHEN gone.status IN ('COMPLETED', 'FAILED') THEN gone.status ELSE 'CANCELLED' END, count(*)
    FROM gone JOIN batches ON batches.batch_id = ANY (ARRAY[gone.batch_id])
    WHERE batches.finished_at IS NULL AND NOT EXISTS ( -- a later run has replaced it
        SELECT FROM replaced_jobs
        WHERE replaced_jobs.batch_id = gone.batch_id AND replaced_jobs.job_id = coalesce(gone.fan_out_id, gone.job_id) OFFSET 0
    )
    GROUP BY 1, 2;
    RETURN NULL;
END $function$
;

CREATE OR REPLACE FUNCTION end_before(old_status text, old_attempt integer, old_code text, new_status text, new_attempt integer, new_code text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
RETURN CASE WHEN (old_status = ANY (ARRAY['COMPLETED'::text, 'FAILED'::text, 'CANCELLED'::text])) THEN (CASE WHEN ((old_status <> new_status) OR (old_attempt <> new_attempt)) THEN old_status ELSE ''::text END || CASE WHEN ((old_status = 'FAILED'::text) AND ((new_status <> 'FAILED'::text) OR (old_attempt <> new_attempt) OR (COALESCE(old_code, ''::text) <> new_code))) THEN (' '::text || COALESCE(old_code, ''::text)) ELSE ''::text END) ELSE NULL::text END
;

CREATE OR REPLACE FUNCTION enter_deliveries(ids uuid[])
 RETURNS bigint
 LANGUAGE plpgsql
 STRICT SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
    entered bigint;
BEGIN
    INSERT INTO deliveries (job_id, version, owner_id, job_status, url, job, snapshot)
    SELECT job_id, version, owner_id, status, callback_url,
        json_build_object(
            'jobId', job_id, 'version', version, 'ownerId', owner_id, 'callbackUrl', callback_url, 'jobType', job_type,
            'queue', queue, 'status', status, 'spec', spec, 'attempt', attempt, 'retryCount', retry_count, 'runAt', run_at,
            'tags', tags, 'traceId', trace_id, 'createdAt', created_at, 'updatedAt', updated_at, 'expiresAt', expires_at,
            'orderingKey', ordering_key, 'fairnessKey', fairness_key, 'batchId', batch_id
        ), snapshot
    FROM jobs WHERE job_id = ANY (ids)
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS entered = ROW_COUNT;
    RETURN entered;
END $function$
;

CREATE OR REPLACE FUNCTION enter_failures(ids uuid[])
 RETURNS bigint
 LANGUAGE plpgsql
 STRICT SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
    entered bigint;
BEGIN
    INSERT INTO failure_entries (owner_id, job_type, error_code, kept, failed, first_at, last_at, last_id)
    SELECT owner_id, job_type, coalesce(error_code, ''), count(*), count(*), least(min(updated_at), now()),
        least(max(updated_at), now()), (array_agg(job_id ORDER BY updated_at DESC))[1]
    FROM jobs WHERE job_id = ANY (ids) AND ended_as IS DISTINCT FROM ''
    GROUP BY owner_id, job_type, coalesce(error_code, ''), date_trunc('hour', updated_at);
    GET DIAGNOSTICS entered = ROW_COUNT;
    RETURN entered;
END $function$
;

CREATE OR REPLACE FUNCTION enter_former_ends(ids uuid[])
 RETURNS bigint
 LANGUAGE plpgsql
 STRICT SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
    entered bigint;
BEGIN
    INSERT INTO tally_entries (owner_id, queue, job_type, what, n, kept)
    SELECT owner_id, queue, job_type, split_part(ended_as, ' ', 1), 0, -count(*)
    FROM jobs WHERE job_id = ANY (ids) AND split_part(ended_as, ' ', 1) <> ''
    GROUP BY owner_id, queue, job_type, split_part(ended_as, ' ', 1);
    INSERT INTO failure_entries (owner_id, job_type, error_code, kept, failed)
    SELECT owner_id, job_type, substr(ended_as, position(' ' IN ended_as) + 1), -count(*), 0
    FROM jobs WHERE job_id = ANY (ids) AND ended_as LIKE '% %'
    GROUP BY owner_id, job_type, substr(ended_as, position(' ' IN ended_as) + 1);
    GET DIAGNOSTICS entered = ROW_COUNT;
    RETURN entered;
END $function$
;

CREATE OR REPLACE FUNCTION failure_has(of_job uuid, wanted text)
 RETURNS boolean
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
    SELECT coalesce((
        SELECT position(lower(wanted) IN lower(substring(left(snapshot, 32768)
            FROM '"lastError":\{"errorCode":"(?:[^"\\]|\\.)*","message":"(?!sealed:)((?:[^"\\]|\\.)*)"'))) > 0
        FROM jobs WHERE job_id = of_job AND error_code IS NOT NULL
    ), false)
$function$
;

CREATE OR REPLACE FUNCTION payload_has(of_job uuid, path text[], wanted text)
 RETURNS boolean
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
    SELECT coalesce((
        SELECT CASE json_typeof(value)
            WHEN 'string' THEN value #>> '{}' = wanted
            WHEN 'number' THEN value::text = wanted OR CASE
                WHEN wanted ~ '^-?[0-9]+([.][0-9]+)?([eE][-+]?[0-9]{1,3})?$' THEN value::text::numeric = wanted::numeric
            END
            ELSE value::text = wanted
        END
        FROM (SELECT payload #> path AS value FROM jobs WHERE job_id = of_job OFFSET 0) AS found
    ), false)
$function$
;

CREATE OR REPLACE FUNCTION shelf_of(status text, version bigint)
 RETURNS smallint
 LANGUAGE sql
 IMMUTABLE
RETURN CASE status WHEN 'COMPLETED'::text THEN NULL::integer WHEN 'PENDING'::text THEN CASE version WHEN 0 THEN 0 ELSE 2 END WHEN 'SCHEDULED'::text THEN CASE version WHEN 0 THEN 1 ELSE 3 END WHEN 'RETRYING'::text THEN 4 WHEN 'QUEUED'::text THEN 5 WHEN 'RUNNING'::text THEN 6 WHEN 'WAITING'::text THEN 7 WHEN 'FAILED'::text THEN 8 WHEN 'CANCELLED'::text THEN 9 ELSE NULL::integer END
;

CREATE OR REPLACE FUNCTION tally_deleted()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
BEGIN
    INSERT INTO tally_entries (owner_id, queue, job_type, what, n, kept)
    SELECT owner_id, queue, job_type, status, 0, -count(*) FROM gone
    WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED') GROUP BY owner_id, queue, job_type, status;
    INSERT INTO failure_entries (owner_id, job_type, error_code, kept, failed)
    SELECT owner_id, job_type, coalesce(error_code, ''), -count(*), 0 FROM gone
    WHERE status = 'FAILED' GROUP BY owner_id, job_type, coalesce(error_code, '');
    RETURN NULL;
END $function$
;

CREATE OR REPLACE FUNCTION times_due(age interval)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE
RETURN (width_bucket(date_part('epoch'::text, age), ARRAY[(10)::double precision, (20)::double precision, (40)::double precision, (80)::double precision, (160)::double precision, (300)::double precision]) + (GREATEST(floor((date_part('epoch'::text, age) / (300)::double precision)), (0)::double precision))::integer)
;

CREATE OR REPLACE FUNCTION update_waits(ids uuid[])
 RETURNS bigint
 LANGUAGE plpgsql
 STRICT SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
    due bigint;
BEGIN
    WITH changed AS (
        SELECT job_id, job_type, status, snapshot, waits, event_id AS call,
            CASE WHEN starts_with(event_source, '/jobweaver/child/') AND status IN ('COMPLETED', 'FAILED', 'CANCELLED')
                 THEN substr(event_source, 18)::uuid END AS parent_id
        FROM jobs WHERE job_id = ANY (ids)
    ), locked AS (
        SELECT waits.job_id, waits.name FROM waits
        WHERE waits.job_id = ANY (ARRAY(
                SELECT parent_id FROM changed WHERE parent_id IS NOT NULL UNION ALL SELECT job_id FROM changed WHERE changed.waits
            )) AND EXISTS (
                SELECT FROM changed WHERE changed.waits AND changed.job_id = waits.job_id
                    OR changed.parent_id = waits.job_id AND changed.call = waits.run || ':' || waits.name
            )
        ORDER BY waits.job_id, waits.name
        FOR UPDATE
    ), answered AS ( -- the wait of a parent for its child, which may be deleted before the parent asks
        UPDATE waits SET child_end = changed.snapshot, done_at = now(), look_at = now(),
            child = json_build_object('jobId', changed.job_id, 'jobType', changed.job_type, 'status', changed.status),
            status = CASE waits.status WHEN 'CLOSED' THEN 'CLOSED' ELSE 'DONE' END
        FROM changed
        WHERE (SELECT count(*) FROM locked) > 0 AND waits.job_id = ANY (ARRAY[changed.parent_id])
            AND changed.call = waits.run || ':' || waits.name
        RETURNING waits.job_id, waits.name
    ), interrupted AS ( -- waits that are done meanwhile, and all of a job that has ended: what it has is left
        UPDATE waits SET look_at = now(), status = CASE
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
END $function$
;
