with again as (
    delete from jobweaver.outbox_rejected where $1::uuid[] is null or id = any ($1)
    returning position, id, job_type, payload, options
)
insert into jobweaver.outbox (id, job_type, payload, options)
select id, job_type, payload, options from again order by position
