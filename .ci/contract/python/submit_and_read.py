"""Submits a job with the generated client, and reads it."""

import sys

from jobweaver_client import Client
from jobweaver_client.api.jobs import get_job, list_jobs, submit_job
from jobweaver_client.models import Accepted, Error, Job, JobPage, JobRequest, Status

client = Client(base_url=sys.argv[1])
request = JobRequest(
    job_type="SIMULATION",
    payload={"steps": [{"type": "LOG", "message": "generated"}]},
    priority=7,
    tags=["contract-python"],
)
accepted = submit_job.sync(client=client, body=request)
assert isinstance(accepted, Accepted), accepted

job = get_job.sync(accepted.job_id, client=client, wait="30s")
assert isinstance(job, Job), job
assert job.status == Status.COMPLETED and job.priority == 7, job
assert len(job.history) >= 2 and job.finished_at and job.last_error is None, job

waited = submit_job.sync(client=client, body=JobRequest(job_type="SIMULATION", payload=request.payload), wait="30s")
assert isinstance(waited, Job) and waited.status == Status.COMPLETED, waited

page = list_jobs.sync(client=client, tag="contract-python")
assert isinstance(page, JobPage), page
assert [j.job_id for j in page.jobs] == [accepted.job_id], page

wrong = submit_job.sync(client=client, body=JobRequest(job_type="NOBODY", payload={}))
assert isinstance(wrong, Error) and wrong.error_code, wrong
