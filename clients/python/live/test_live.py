"""Tests on the gateway at JOBWEAVER_URL, with the package as it is published."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobweaver import (
    AsyncClient,
    BatchRequest,
    Client,
    Conflict,
    Filter,
    FlowJobRequest,
    FlowRequest,
    InvalidRequest,
    JobChange,
    JobEnded,
    JobEvent,
    JobRequest,
    NotFound,
    RunAgainRequest,
    has_ended,
)

URL = os.environ["JOBWEAVER_URL"]
EXAMPLES = Path(__file__).parents[1] / "examples"
STEPS = {"steps": [{"type": "LOG", "message": "hi"}]}
LOG = JobRequest(job_type="SIMULATION", payload=STEPS)


@pytest.fixture
def jobs():
    with Client(URL) as client:
        yield client


def test_a_job_is_submitted_changed_cancelled_and_run_again(jobs: Client) -> None:
    job_id = jobs.submit(JobRequest(job_type="SIMULATION", payload=STEPS, delay_ms=3_600_000, tags=["python"])).job_id
    while jobs.get(job_id).version == 0:  # a command that overtakes its job is delayed until the next sweep
        pass
    jobs.change(job_id, JobChange(priority=7))
    while jobs.get(job_id).priority != 7:
        pass
    done = False
    while not done:  # an unconfirmed change blocks the next command
        try:
            jobs.reschedule(job_id, datetime.now(UTC) + timedelta(hours=2))
            done = True
        except Conflict:
            pass
    done = False
    while not done:
        try:
            jobs.cancel(job_id)
            done = True
        except Conflict:
            pass
    assert jobs.wait(job_id).status == "CANCELLED"
    again = jobs.run_again(job_id, RunAgainRequest(delay_ms=0))
    assert jobs.wait(again.job_id, timeout=30).run_again_of == job_id
    while not (logs := jobs.logs(again.job_id).logs):  # a job may have ended before its lines are stored
        pass
    assert logs[0].text == "hi"
    assert job_id in [each.job_id for each in jobs.list(Filter(tag="python"))]


def test_what_is_wrong_is_an_error_of_its_type(jobs: Client) -> None:
    with pytest.raises(InvalidRequest):
        jobs.submit(JobRequest(job_type="NO-SUCH-TYPE", payload={}))
    with pytest.raises(NotFound):
        jobs.get("01936f3e-5f3e-7cc0-8000-0123456789ab")
    with pytest.raises(JobEnded):
        jobs.run(JobRequest(job_type="SIMULATION", payload={"steps": [{"type": "FAIL", "message": "no", "retryable": False}]}))
    key = f"python-{time.time_ns()}"
    request = JobRequest(job_type="SIMULATION", payload=STEPS, idempotency_key=key)
    assert jobs.submit(request).job_id == jobs.submit(request).job_id
    with pytest.raises(Conflict):
        jobs.submit(request.model_copy(update={"priority": 9}))


def test_asyncio_follows_a_job_by_its_stream() -> None:
    async def run() -> list[str]:
        seen = []
        async with AsyncClient(URL) as jobs:
            accepted = await jobs.submit(LOG)
            async for event in jobs.stream(accepted.job_id):
                if isinstance(event, JobEvent):
                    seen.append(event.data.status)
                    if has_ended(event.data):
                        break
        return seen

    assert asyncio.run(asyncio.wait_for(run(), 30))[-1] == "COMPLETED"


@pytest.mark.parametrize(
    ("example", "printed"),
    [
        ("quickstart.py", "COMPLETED\n202 API.INVALID_JOB_REQUEST\nCANCELLED API.INVALID_STATE_TRANSITION\n"),
        ("quickstart_async.py", "['COMPLETED', 'COMPLETED', 'COMPLETED']\n"),
        ("first.py", "4200 cents for order 16\n"),
        ("task.py", "4200 cents for order 16\n2 boxes: 900 cents for order 17\n"),
        ("flow.py", "FAILED CANCELLED COMPLETED\n2\nCOMPLETED\nCOMPLETED 2\nREMOVING\n"),
    ],
)
def test_the_quickstart_runs(example: str, printed: str) -> None:
    assert subprocess.check_output([sys.executable, EXAMPLES / example], text=True) == printed


def test_flows_batches_and_queues_are_listed_and_cancelled(jobs: Client) -> None:
    flow_id = jobs.flows.create(
        FlowRequest(jobs={"only": FlowJobRequest(job_type="SIMULATION", payload=STEPS, delay_ms=3_600_000)})
    ).flow_id
    assert jobs.flows.get(flow_id).jobs["only"].job_type == "SIMULATION"
    jobs.flows.cancel(flow_id)
    assert jobs.flows.wait(flow_id, timeout=30).status == "CANCELLED"
    later = JobRequest(job_type="SIMULATION", payload=STEPS, delay_ms=3_600_000)
    batch_id = jobs.batches.create(BatchRequest(jobs=[later], idempotency_key=f"python-batch-{time.time_ns()}"))
    assert jobs.batches.get(batch_id).status == "OPEN"
    with pytest.raises(TimeoutError):
        jobs.batches.wait(batch_id, timeout=0.1)
    jobs.batches.cancel(batch_id)
    assert jobs.batches.wait(batch_id, timeout=30).status == "CANCELLED"
    jobs.batches.retry(batch_id)
    assert flow_id in [flow.flow_id for flow in jobs.flows.list(status="CANCELLED")]
    assert batch_id in [batch.batch_id for batch in jobs.batches.list()]
    assert "default" in [queue.queue for queue in jobs.queues.list() if queue.origin == "setting"]
    with pytest.raises(Conflict):
        jobs.queues.remove("default")
    with pytest.raises(NotFound):
        jobs.queues.get("no-such-queue")


def test_asyncio_has_flows_batches_and_queues() -> None:
    async def run() -> None:
        async with AsyncClient(URL) as jobs:
            flow = await jobs.flows.create(FlowRequest(jobs={"only": FlowJobRequest(job_type="SIMULATION", payload=STEPS)}))
            assert (await jobs.flows.wait(flow.flow_id)).status == "COMPLETED"
            batch_id = await jobs.batches.create(BatchRequest(jobs=[LOG], closed=True))
            assert (await jobs.batches.wait(batch_id)).status == "COMPLETED"
            assert batch_id in [batch.batch_id async for batch in jobs.batches.list(status="COMPLETED")]
            assert flow.flow_id in [flow.flow_id async for flow in jobs.flows.list()]
            with pytest.raises(Conflict):
                await jobs.flows.retry(flow.flow_id)
            assert (await jobs.queues.get("default")).state == "ACTIVE"

    asyncio.run(asyncio.wait_for(run(), 60))


def test_types_are_made_of_a_gateways_job_types() -> None:
    made = subprocess.check_output([sys.executable, "-m", "jobweaver.types"], text=True)
    assert '"SIMULATION": SimulationPayload,' in made
    compile(made, "job_types.py", "exec")


def test_a_webhook_reaches_the_example(jobs: Client) -> None:
    secret = jobs.request("GET", "/api/webhook-secrets").json()["end"][0]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    env = os.environ | {"PORT": str(port), "WEBHOOK_SECRET": secret}
    with subprocess.Popen([sys.executable, EXAMPLES / "webhook.py"], env=env, stdout=subprocess.PIPE, text=True) as receiver:
        try:
            while socket.socket().connect_ex(("127.0.0.1", port)) != 0:
                assert receiver.poll() is None
            request = LOG.model_copy(update={"callback_url": f"http://127.0.0.1:{port}/done"})
            accepted = jobs.submit(request)
            assert receiver.stdout is not None
            assert receiver.stdout.readline().split()[1:] == [str(accepted.job_id), "COMPLETED"]
        finally:
            receiver.terminate()
