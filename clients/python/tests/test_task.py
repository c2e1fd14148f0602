"""Tasks, of both clients and in a worker."""

import asyncio
import json as jsonlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from conftest import ACCEPTED, ID, Gateway, job, json
from pydantic import BaseModel, Field
from test_worker import WorkGateway, play

from jobweaver import AsyncClient, AsyncTask, Attempt, Client, JobEnded, JobWeaverError, Task, TaskSchedule, Worker


class Charge(BaseModel):
    order_id: str = Field(alias="orderId")
    cents: int = Field(ge=1)
    currency: str = "EUR"

    model_config = {"populate_by_name": True}


@dataclass
class Receipt:
    receipt: str
    at: datetime


NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
OUTPUT = {"receipt": "r1", "at": "2026-11-29T12:00:00Z"}


def charge(payload: Charge) -> Receipt:
    """Charges a card."""
    return Receipt(f"r-{payload.order_id}-{payload.currency}", NOON)


def test_a_task_submits_typed_jobs_with_its_defaults() -> None:
    gateway = Gateway(json(202, ACCEPTED), json(202, ACCEPTED), json(200, job("COMPLETED", output=OUTPUT)))
    with Client("http://gateway", transport=gateway.transport) as client:
        task = client.task("CHARGE", max_retry_count=5, tags=["shop"])(charge)
        task.submit(Charge(order_id="o1", cents=5), priority=7, tags=["vip"], idempotency_key="o1")
        receipt = task.run(Charge(order_id="o2", cents=5), queue="billing")
        assert (receipt.receipt, receipt.at) == ("r1", NOON)
    first, second = (jsonlib.loads(asked.content) for asked in gateway.asked[:2])
    assert first == {
        "jobType": "CHARGE",
        "payload": {"orderId": "o1", "cents": 5, "currency": "EUR"},
        "queue": "pull",
        "maxRetryCount": 5,
        "tags": ["vip"],
        "priority": 7,
        "idempotencyKey": "o1",
    }
    assert second["queue"] == "billing"
    assert task(Charge(order_id="o1", cents=5)).receipt == "r-o1-EUR"  # here, without a job


def test_a_task_of_other_workers_needs_no_function() -> None:
    gateway = Gateway(json(202, ACCEPTED), json(200, job("COMPLETED", output=OUTPUT)), json(200, job("FAILED")))

    async def main() -> None:
        async with AsyncClient("http://gateway", transport=gateway.transport) as client:
            task = AsyncTask(client, "CHARGE", Charge, Receipt)
            assert (await task.run(Charge(order_id="o1", cents=5))).at == NOON
            with pytest.raises(JobEnded):
                await task.wait(ID)
            with pytest.raises(TypeError, match="CHARGE has no function"):
                Worker(client, tasks=[task])

    asyncio.run(main())


def test_submit_all_sends_all_payloads_together() -> None:
    results = [ACCEPTED | {"index": i, "status": 202} for i in range(2)]
    gateway = Gateway(json(200, {"results": results}))
    with Client("http://gateway", transport=gateway.transport) as client:
        Task(client, "COUNT", int, int).submit_all([1, 2])
    assert [each["payload"] for each in jsonlib.loads(gateway.asked[0].content)["jobs"]] == [1, 2]


def test_wrong_definitions_are_refused() -> None:
    with Client("http://gateway") as client:
        with pytest.raises(ValueError, match="max_retries"):
            client.task("CHARGE", max_retries=5)(charge)
        with pytest.raises(TypeError, match="takes no payload"):
            client.task("CHARGE")(lambda: None)  # type: ignore[call-overload]


def test_a_worker_describes_its_tasks_and_runs_them() -> None:
    seen: list[Any] = []

    async def main() -> None:
        gateway = WorkGateway()
        client = gateway.client()

        nightly = TaskSchedule("nightly", "30 2 * * *", Charge(order_id="all", cents=1), "Europe/Berlin", {"overlap": "skip"})

        @client.task("SHIP", title="Ship an order", schedules=[nightly])
        async def ship(payload: Charge, attempt: Attempt) -> dict[str, int]:
            attempt.log(f"ship {payload.order_id}")
            seen.append((payload.currency, attempt.attempt))
            return {"boxes": 1}

        plain = client.task("CHARGE")(charge)
        worker = Worker(client, tasks=[ship, plain], concurrency=1, heartbeat=0.005, grace=0)
        with pytest.raises(ValueError, match="two handlers"):
            worker.handler("SHIP")(lambda attempt: None)
        task = asyncio.create_task(worker.serve())
        await gateway.offer("a", jobType="SHIP", payload={"orderId": "o1", "cents": 5})
        await gateway.offer("b", jobType="CHARGE", payload={"orderId": "o1", "cents": 5})
        await gateway.offer("c", jobType="CHARGE", payload={"cents": 0})
        await gateway.until(lambda: len(gateway.results) == 3)
        task.cancel()
        await asyncio.wait({task})

        (first, described), (_, timed), (second, other), (_, none) = gateway.described
        assert (first, second) == ("SHIP", "CHARGE")
        job = {"jobType": "SHIP", "queue": "pull", "payload": {"orderId": "all", "cents": 1, "currency": "EUR"}}
        at = {"name": "nightly", "cron": "30 2 * * *", "timeZone": "Europe/Berlin", "overlap": "skip"}
        assert timed == {"schedules": [at | {"job": job}]}
        assert none == {"schedules": []}
        assert described["title"] == "Ship an order"
        assert described["schema"]["required"] == ["orderId", "cents"]
        assert other["description"] == "Charges a card."
        assert other["outputSchema"]["properties"]["at"]["format"] == "date-time"
        shipped, charged, refused = gateway.results
        assert shipped["output"] == {"boxes": 1}
        assert charged["output"] == {"receipt": "r-o1-EUR", "at": "2026-11-29T12:00:00Z"}
        assert refused["errorCode"] == "WORKER.INVALID_PAYLOAD"
        assert refused["retryable"] is False
        assert refused["message"].startswith("payload.orderId: ")
        assert "payload.cents: " in refused["message"]

    play(main)
    assert seen == [("EUR", 1)]


def test_a_client_has_its_address_and_key_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBWEAVER_URL", "http://from-env/")
    monkeypatch.setenv("JOBWEAVER_API_KEY", "env-key")
    gateway = Gateway(json(404, {"status": 404, "errorCode": "API.JOB_NOT_FOUND", "message": "no"}))
    with Client(transport=gateway.transport) as client, pytest.raises(JobWeaverError):
        client.get(ID)
    assert gateway.asked[0].url.host == "from-env"
    assert gateway.asked[0].headers["Authorization"] == "Bearer env-key"
