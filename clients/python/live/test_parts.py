"""Schedules, controls, operations and what else an installation has, on the gateway at JOBWEAVER_URL."""

import asyncio
import os
import time

import pytest

from jobweaver import AsyncClient, Client, Conflict, Filter, JobRequest, NotFound, ScheduleRequest

URL = os.environ["JOBWEAVER_URL"]
NO_ID = "01936f3e-5f3e-7cc0-8000-0123456789ab"
OWNER = f"python-{time.time_ns()}"
PAYLOAD = {"steps": [{"type": "LOG", "message": "hi"}]}
LOG = JobRequest(job_type="SIMULATION", payload=PAYLOAD)


@pytest.fixture
def jobs():
    with Client(URL) as client:
        yield client


def test_a_schedule_is_created_paused_resumed_run_and_deleted(jobs: Client) -> None:
    schedules = jobs.schedules.of("python")
    request = ScheduleRequest(name="python", cron="@yearly", time_zone="Europe/Berlin", job=LOG)
    made = schedules.create(request)
    assert (made.owner_id, made.overlap, len(made.upcoming)) == ("python", "allow", 5)
    with pytest.raises(Conflict):
        schedules.create(request)
    assert schedules.pause("python").next_at is None
    assert not schedules.resume("python").paused
    assert jobs.wait(schedules.run("python").job_id, timeout=30).status == "COMPLETED"
    assert schedules.set("python", ScheduleRequest(cron="@daily", overlap="skip", job=LOG)).cron == "@daily"
    assert schedules.get("python").overlap == "skip"
    assert [schedule.name for schedule in schedules.list()] == ["python"]
    assert isinstance(list(schedules.ticks("python")), list)
    schedules.delete("python")
    with pytest.raises(NotFound):
        schedules.get("python")
    assert len(jobs.schedules.times("@hourly")) == 5


def test_a_queue_is_paused_and_limited(jobs: Client) -> None:
    jobs.queues.create("python-slow")
    jobs.controls.set("queue", "python-slow", max_running=1, starts_per_second=2.5)
    assert jobs.controls.pause("queue", "python-slow").max_running == 1
    slow = JobRequest(job_type="SIMULATION", payload=PAYLOAD, queue="python-slow", fairness_key="python/1")
    job_id = jobs.submit(slow).job_id
    while not (shares := list(jobs.queues.shares("python-slow", q="THON/1"))):  # they are a second old
        pass
    assert (shares[0].waiting, shares[0].weight) == (1, 1)
    assert not jobs.controls.resume("queue", "python-slow").paused
    assert jobs.wait(job_id, timeout=30).status == "COMPLETED"
    assert jobs.controls.set("fairnessKey", "python/1", weight=7).weight == 7
    assert ("fairnessKey", "python/1") in [(control.kind, control.name) for control in jobs.controls.list()]
    jobs.controls.delete("fairnessKey", "python/1")
    jobs.controls.delete("queue", "python-slow")
    assert jobs.controls.get("fairnessKey", "python/1").weight == 1
    jobs.queues.remove("python-slow", drain=True)


def test_an_operation_reaches_the_jobs_of_a_filter(jobs: Client) -> None:
    later = JobRequest(job_type="SIMULATION", payload=PAYLOAD, delay_ms=3_600_000, tags=["python-operation"])
    jobs.submit_batch([later, later])
    started = jobs.operations.start("cancel", which=Filter(tag="python-operation", status=["SCHEDULED", "PENDING"]))
    ended = jobs.operations.wait(started.operation_id, timeout=30)
    assert (ended.status, ended.progress.matched) == ("COMPLETED", 2)
    assert jobs.operations.get(started.operation_id).finished_at == ended.finished_at
    assert started.operation_id in [operation.operation_id for operation in jobs.operations.list()]
    with pytest.raises(NotFound):
        jobs.operations.abort(NO_ID)


def test_failures_are_counted_and_a_delivery_is_sent_again(jobs: Client) -> None:
    failing = JobRequest(
        job_type="SIMULATION",
        payload={"steps": [{"type": "FAIL", "message": "no", "retryable": False}]},
        owner_id=OWNER,
        callback_url="http://127.0.0.1:9/nothing",
    )
    job_id = jobs.submit(failing).job_id
    version = jobs.wait(job_id, timeout=30).version
    assert [job.job_id for job in jobs.dead.list(Filter(owner_id=OWNER))] == [job_id]
    while not (groups := jobs.dead.groups(owner_id=OWNER).groups):  # they are a second old
        pass
    assert (groups[0].job_type, groups[0].jobs) == ("SIMULATION", 1)
    assert jobs.deliveries.of_job(job_id)[0].version == version
    assert jobs.deliveries.retry(job_id, version).job_id == job_id
    assert job_id in [delivery.job_id for delivery in jobs.deliveries.list()]


def test_an_installation_shows_its_types_workers_keys_and_figures(jobs: Client) -> None:
    assert "SIMULATION" in [job_type.name for job_type in jobs.job_types.list()]
    assert jobs.job_types.get("SIMULATION").builtin
    with pytest.raises(NotFound):
        jobs.job_types.delete("NO-SUCH-TYPE")
    worker_id = next(worker.worker_id for worker in jobs.workers.list().workers if "SIMULATION" in worker.job_types)
    assert jobs.workers.drain(worker_id).draining
    assert not jobs.workers.undrain(worker_id).draining
    assert jobs.hooks.list() == []
    key = jobs.keys.create("python", ["submit"], owner_id=OWNER)
    following = jobs.keys.rotate(key.key_id, overlap_seconds=60)
    assert {each.key_id for each in jobs.keys.list(owner_id=OWNER)} == {key.key_id, following.key_id}
    assert jobs.keys.revoke(following.key_id).revoked_at is not None
    assert jobs.keys.get(key.key_id).name == "python"
    assert list(jobs.audit.list(action="no-such-action")) == []
    assert list(jobs.rejected.list(redriven=False)) == []
    with pytest.raises(NotFound):
        jobs.rejected.get(NO_ID)
    assert jobs.installation.me().actor == "anonymous"
    while OWNER not in jobs.installation.owners(q=OWNER.upper()):  # they are some seconds old
        pass
    assert len(jobs.installation.stats(type="SIMULATION").types) == 1
    assert jobs.installation.lag().at
    assert jobs.installation.health().status == "UP"


def test_the_same_with_asyncio() -> None:
    async def run() -> None:
        async with AsyncClient(URL) as jobs:
            made = await jobs.schedules.create(ScheduleRequest(name="python-asyncio", cron="@yearly", job=LOG))
            assert made.name in [schedule.name async for schedule in jobs.schedules.list()]
            await jobs.schedules.delete("python-asyncio")
            assert (await jobs.controls.get("queue", "default")).version >= 0

    asyncio.run(run())
