select * from (
    select id, job_type, payload, options, created_at, rejected_at, status, error_code, error
    from jobweaver.outbox_rejected
    order by position desc limit $2
) as rejected
union all
select * from (
    select id, job_type, payload, options, created_at, null::timestamptz, null::int, null::text, null::text
    from jobweaver.outbox
    where not $1
    order by position limit $2
) as waiting
