-- The outbox of JobWeaver, for your own PostgreSQL (14 or later). Run it as the role that owns, or will own, the schema
-- jobweaver. It needs neither a superuser nor an extension. It can run again at any time, even while the outbox is in
-- use: it takes no lock on an existing table.

do $$
declare
    version constant int := 1;
    owner pg_catalog.oid;
    installed int;
begin
    select nspowner,
        pg_catalog.substring(pg_catalog.obj_description(oid, 'pg_namespace'), '^The outbox of JobWeaver, version (\d+)$')::int
    into owner, installed
    from pg_catalog.pg_namespace where nspname = 'jobweaver';
    if owner is null then
        create schema jobweaver;
    elsif owner <> (select oid from pg_catalog.pg_roles where rolname = current_user) then
        -- The owner of the schema can put functions there that run with our rights.
        raise exception 'the schema jobweaver belongs to the role %: run this as that role', pg_catalog.pg_get_userbyid(owner);
    elsif installed > version then
        raise exception 'the outbox is of version %, and this is the SQL of version %: use a newer jobweaver', installed, version;
    end if;
    execute pg_catalog.format('comment on schema jobweaver is %L', 'The outbox of JobWeaver, version ' || version);
end
$$;

-- A UUID of version 7: milliseconds, then random bits. The last bit stays 0, so that the job's trace is not kept.
create or replace function jobweaver.new_id() returns uuid
language sql volatile parallel safe
begin atomic
    select (
        lpad(to_hex(floor(extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '7' || substr(chance.digits, 14, 18)
        || translate(substr(chance.digits, 32, 1), '13579bdf', '02468ace')
    )::uuid
    from (select replace(gen_random_uuid()::text, '-', '') as digits) as chance;
end;

-- A row is a job that a relay has not submitted yet. Rows are inserted and deleted, and never updated. The primary key
-- serves all queries: relays read it in the order of position, separately for jobs with an orderingKey.
create table if not exists jobweaver.outbox (
    ordered    boolean     not null generated always as ((options -> 'orderingKey') is not null) stored,
    position   bigint      not null generated always as identity,
    id         uuid        not null default jobweaver.new_id(),
    job_type   text        not null,
    payload    jsonb       not null,
    options    jsonb       not null default '{}',
    created_at timestamptz not null default clock_timestamp(),
    primary key (ordered, position),
    constraint id_is_a_uuid_of_version_7 check (id::text ~ '^.{14}7.{4}[89ab]'),
    constraint job_type_is_a_name check (job_type ~ '^[A-Za-z][A-Za-z0-9._-]{0,99}$'),
    constraint options_are_members_of_a_job_request check (
        jsonb_typeof(options) = 'object'
        and options - array['queue', 'priority', 'runAt', 'delayMs', 'expiresAt', 'timeoutMs', 'maxRetryCount', 'retryPolicy',
            'orderingKey', 'fairnessKey', 'keepBuild', 'after', 'onDependencyFailure', 'tags', 'ownerId', 'callbackUrl',
            'batchId', 'unique', 'throttle', 'singleton', 'debounce'] = '{}'),
    constraint a_job_has_at_most_512_kib check (octet_length(payload::text) + octet_length(options::text) <= 523000)
) with (
    -- All rows are deleted soon, so their number means nothing: vacuum runs by the number of dead rows.
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = -1,
    toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 5000
);

-- An outbox that was installed before batches, submit policies and keepBuild existed refuses these options.
do $$
begin
    if not exists (
        select from pg_constraint where conrelid = 'jobweaver.outbox'::regclass
            and conname = 'options_are_members_of_a_job_request' and pg_get_constraintdef(oid) like '%debounce%'
    ) then
        alter table jobweaver.outbox
            drop constraint options_are_members_of_a_job_request,
            add constraint options_are_members_of_a_job_request check (
                jsonb_typeof(options) = 'object'
                and options - array['queue', 'priority', 'runAt', 'delayMs', 'expiresAt', 'timeoutMs', 'maxRetryCount',
                    'retryPolicy', 'orderingKey', 'fairnessKey', 'keepBuild', 'after', 'onDependencyFailure', 'tags', 'ownerId',
                    'callbackUrl', 'batchId', 'unique', 'throttle', 'singleton', 'debounce'] = '{}');
    end if;
end $$;

-- The jobs that the gateway refused for good, with its answer. A row stays until an operator retries or discards it. A
-- position can come again: a database that was moved by logical replication has the rows, but counts from 1.
create table if not exists jobweaver.outbox_rejected (
    position    bigint      not null,
    id          uuid        not null,
    job_type    text        not null,
    payload     jsonb       not null,
    options     jsonb       not null,
    created_at  timestamptz not null,
    rejected_at timestamptz not null default clock_timestamp(),
    status      int         not null,
    error_code  text        not null,
    error       text        not null,
    primary key (position, id)
);

-- Stores a job in your transaction, and returns its id. It runs with the rights of its caller.
create or replace function jobweaver.enqueue(job_type text, payload jsonb, options jsonb default '{}') returns uuid
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    made constant uuid := jobweaver.new_id();
begin
    insert into jobweaver.outbox (id, job_type, payload, options)
    values (made, enqueue.job_type, enqueue.payload, coalesce(enqueue.options, '{}'));
    return made;
end
$$;

-- Wakes the relays at the commit. Commits with notifications wait for each other. So no notification is sent while a
-- relay holds the lock that shows that it takes rows by the hundred: such a relay looks again by itself.
create or replace function jobweaver.outbox_wake() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if pg_try_advisory_lock_shared(1785164650, 1) then
        perform pg_advisory_unlock_shared(1785164650, 1), pg_notify('jobweaver_outbox', '');
    end if;
    return null;
end
$$;

do $$
begin
    if not exists (
        select from pg_catalog.pg_trigger where tgrelid = 'jobweaver.outbox'::regclass and tgname = 'outbox_wake'
    ) then
        create trigger outbox_wake after insert on jobweaver.outbox
            for each statement execute function jobweaver.outbox_wake();
    end if;
end
$$;

revoke all on all functions in schema jobweaver from public;
