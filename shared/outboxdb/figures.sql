select
    (select count(*) from (select from jobweaver.outbox limit $1) as waiting),
    (select count(*) from (select from jobweaver.outbox_rejected limit $1) as rejected),
    coalesce(extract(epoch from clock_timestamp() - least(
        (select created_at from jobweaver.outbox where not ordered order by ordered, position limit 1),
        (select created_at from jobweaver.outbox where ordered order by ordered, position limit 1)
    )), 0)::float8
