"""Tests of workers on the gateway at JOBWEAVER_URL, which has a queue pull and the job types RESIZE and PYTHON."""

import asyncio
import os
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from jobweaver import AsyncClient, Attempt, Client, Conflict, Job, JobRequest, RetryAfter, Snooze, WaitForCallback, Worker

URL = os.environ["JOBWEAVER_URL"]
EXAMPLE = Path(__file__).parents[1] / "examples" / "worker.py"


@pytest.fixture
def jobs():
    with Client(URL) as client:
        yield client


def submit(jobs: Client, job_type: str, payload: Any) -> uuid.UUID:
    return jobs.submit(JobRequest(job_type=job_type, queue="pull", payload=payload)).job_id


def handle(attempt: Attempt) -> Any:
    attempt.log("a line")
    attempt.progress(50, "half")
    if attempt.payload == "retry" and attempt.attempt == 1:
        raise RetryAfter(0.001, "not yet", error_code="A.B")
    if attempt.payload == "snooze" and attempt.attempt == 1:
        raise Snooze(0.001)
    if attempt.payload == "steps":
        first = attempt.step("once", lambda: attempt.attempt)
        attempt.sleep("nap", 0.5)
        return {"attempt": attempt.attempt, "first": first}
    if attempt.payload == "callback":
        assert attempt.callback is not None
        body = {"jobId": str(attempt.job_id), "attempt": attempt.attempt, "status": "COMPLETED", "output": "from outside"}
        httpx.post(attempt.callback.url, json=body, headers={"X-Callback-Secret": attempt.callback.secret}).raise_for_status()
        raise WaitForCallback(60)
    return {"attempt": attempt.attempt}


@pytest.mark.parametrize("asynchronous", [False, True], ids=["threads", "asyncio"])
def test_a_worker_runs_attempts_to_each_of_their_ends(jobs: Client, asynchronous: bool) -> None:
    started, reasons = threading.Event(), []

    def in_thread(attempt: Attempt) -> Any:
        if attempt.payload == "cancel":
            started.set()
            attempt.cancelled.wait()
            reasons.append(attempt.reason)
        return handle(attempt)

    async def in_loop(attempt: Attempt) -> Any:
        if attempt.payload == "cancel":
            started.set()
            try:
                await asyncio.sleep(60)
            finally:
                reasons.append(attempt.reason)
        return await asyncio.to_thread(handle, attempt)

    worker = Worker(AsyncClient(URL), concurrency=3, queues=["pull"])
    worker.handler("PYTHON")(in_loop if asynchronous else in_thread)
    with worker:
        for payload, output, retries in [
            ("", {"attempt": 1}, 0),
            ("retry", {"attempt": 2}, 1),
            ("snooze", {"attempt": 2}, 0),
            ("steps", {"attempt": 2, "first": 1}, 0),
            ("callback", "from outside", 0),
        ]:
            ended: Job = jobs.wait(submit(jobs, "PYTHON", payload), timeout=60)
            assert (ended.status, ended.output, ended.retry_count) == ("COMPLETED", output, retries), payload
            while "a line" not in [line.text for line in jobs.logs(ended.job_id).logs]:
                pass  # the log may be a moment behind
        job_id = submit(jobs, "PYTHON", "cancel")
        assert started.wait(60)
        cancelled = False
        while not cancelled:
            try:
                jobs.cancel(job_id)
                cancelled = True
            except Conflict:
                pass
        jobs.wait(job_id, timeout=60)
    assert reasons == ["cancelled"]


def test_the_example_runs_jobs_until_it_is_stopped(jobs: Client) -> None:
    with subprocess.Popen([sys.executable, EXAMPLE]) as example:
        try:
            good = jobs.wait(submit(jobs, "RESIZE", {"width": 640}), timeout=60)
            assert (good.status, good.output) == ("COMPLETED", {"width": 640})
            bad = jobs.wait(submit(jobs, "RESIZE", {"width": 0}), timeout=60)
            assert bad.last_error is not None
            assert (bad.status, bad.retry_count, bad.last_error.error_code) == ("FAILED", 0, "RESIZE.WIDTH")
            example.terminate()
            assert example.wait(60) == 0
        finally:
            example.kill()
