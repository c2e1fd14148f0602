import os

from jobweaver import BatchRequest, Client, FlowJobRequest, FlowRequest, JobRequest


def steps(*, message: str, kind: str = "LOG", **more: object) -> dict[str, object]:
    return {"steps": [{"type": kind, "message": message, **more}]}


def log(message: str) -> JobRequest:
    return JobRequest(job_type="SIMULATION", payload=steps(message=message))


def part(message: str, **more: object) -> FlowJobRequest:
    return FlowJobRequest(job_type="SIMULATION", payload=steps(message=message), **more)


charge = steps(kind="FAIL", message="the card is declined", failAttempts=1, retryable=False)

with Client(os.environ["JOBWEAVER_URL"], os.environ.get("JOBWEAVER_API_KEY")) as jobs:
    # A flow: charge runs when reserve has completed, and report however it ends.
    flow = FlowRequest(
        name="order 17",
        jobs={
            "reserve": part("reserved"),
            "charge": FlowJobRequest(job_type="SIMULATION", payload=charge, after=["reserve"], tags=["payments"]),
            "ship": part("shipped", after=["charge"]),
            "report": part("reported", after=[{"name": "charge", "on": "ended"}]),
        },
    )
    flow_id = jobs.flows.create(flow).flow_id
    failed = jobs.flows.wait(flow_id)
    print(failed.status, failed.jobs["ship"].status, failed.jobs["report"].status)

    # The jobs that failed or were cancelled run again, in their order.
    print(jobs.flows.retry(flow_id))
    print(jobs.flows.wait(flow_id).status)

    # A batch: jobs join it until it is closed, and another job follows its end.
    batch_id = jobs.batches.create(BatchRequest(jobs=[log("one")], on_complete=log("all done")))
    jobs.submit(log("two").model_copy(update={"batch_id": batch_id}))
    jobs.batches.close(batch_id)
    batch = jobs.batches.wait(batch_id)
    print(batch.status, batch.total)

    # A queue of its own, which is removed once its jobs have ended.
    jobs.queues.create("reports")
    jobs.submit(log("in the queue").model_copy(update={"queue": "reports"}))
    jobs.queues.remove("reports", drain=True)
    print(jobs.queues.get("reports").state)
