import os
import time

from jobweaver import Client, Conflict, JobEvent, JobRequest, has_ended

payload = {"steps": [{"type": "LOG", "message": "hi"}]}
hello = JobRequest(job_type="SIMULATION", payload=payload, tags=["quickstart"])

with Client(os.environ["JOBWEAVER_URL"], os.environ.get("JOBWEAVER_API_KEY")) as jobs:
    # Run it in an hour.
    later = jobs.submit(hello.model_copy(update={"delay_ms": 3_600_000}))

    # Submit and wait. A second submit with the same key would return this job.
    job = jobs.run(hello.model_copy(update={"idempotency_key": f"hello-{time.time_ns()}"}))
    print(job.status)

    # Many at once: each has its own result.
    first, second = jobs.submit_batch([hello, JobRequest(job_type="NO-SUCH-TYPE", payload={})])
    print(first.status, second.error.error_code)

    # Follow a job as it changes.
    for event in jobs.stream(first.job_id):
        if isinstance(event, JobEvent) and has_ended(event.data):
            break

    # A waiting job can be changed and cancelled; an ended one cannot.
    jobs.cancel(later.job_id)
    ended = jobs.wait(later.job_id)
    try:
        jobs.cancel(later.job_id)
    except Conflict as conflict:
        print(ended.status, conflict.error_code)
