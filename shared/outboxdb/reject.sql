with gone as (
    delete from jobweaver.outbox where ordered = $1 and position = any ($2) returning *
)
insert into jobweaver.outbox_rejected (
    position, id, job_type, payload, options, created_at, status, error_code, error
)
select gone.position, gone.id, gone.job_type, gone.payload, gone.options, gone.created_at, why.status, why.error_code, why.error
from rows from (unnest($2::bigint[]), unnest($3::int[]), unnest($4::text[]), unnest($5::text[]))
    as why (position, status, error_code, error)
join gone on gone.position = why.position
