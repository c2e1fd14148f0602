select position, id, job_type, payload::text, options::text
from jobweaver.outbox
where ordered = $1 and position >= $2
order by ordered, position
limit $3
for update skip locked
