"""Handlers that wait for events and for the jobs that they call."""

from typing import Any

import pytest
from pydantic import BaseModel

from jobweaver import Attempt, CallFailed, Client
from jobweaver.task import Task
from jobweaver.testing import TestEvent, TestJob


class Item(BaseModel):
    item: str


class Box(BaseModel):
    box: int


class Order(BaseModel):
    order: str
    items: list[str]


jobs = Client("http://none")
pack: Task[Item, Box] = Task(jobs, "shop.pack", Item, Box)
DAY = 86_400.0


@jobs.task("shop.sell")
def sell(payload: Order, attempt: Attempt) -> dict[str, Any]:
    charge = attempt.step("charge", lambda: f"charge {payload.order}")
    paid = attempt.receive("shop.paid", match={"order.id": payload.order}, timeout=DAY)
    if paid is None:
        return {"charge": charge}
    boxes = attempt.call_all(pack, [Item(item=each) for each in payload.items])
    return {"charge": charge, "cents": paid.data["cents"], "boxes": [each.box for each in boxes]}


@jobs.task("shop.sell-async")
async def sell_async(payload: Order, attempt: Attempt) -> dict[str, Any]:
    charge = await attempt.astep("charge", lambda: f"charge {payload.order}")
    paid = await attempt.areceive("shop.paid", match={"order.id": payload.order}, timeout=DAY)
    if paid is None:
        return {"charge": charge}
    boxes = await attempt.acall_all(pack, [Item(item=each) for each in payload.items])
    return {"charge": charge, "cents": paid.data["cents"], "boxes": [each.box for each in boxes]}


order = Order(order="17", items=["a", "b"])


@pytest.mark.parametrize("task", [sell, sell_async])
def test_a_handler_sleeps_until_its_event_comes(task: Task[Order, dict[str, Any]]) -> None:
    job = TestJob()
    first = job.next(task, order)
    assert (first.snooze, len(first.steps)) == (DAY, 1)
    job.events = [
        TestEvent("shop.paid", {"order": {"id": "18"}, "cents": 1}),
        TestEvent("shop.paid", {"order": {"id": "17"}, "cents": 900}),
    ]
    called: list[str] = []

    def box(payload: dict[str, Any]) -> dict[str, int]:
        called.append(payload["item"])
        return {"box": len(called)}

    job.calls["shop.pack"] = box
    for _ in range(2):  # nothing is called again
        ran = job.next(task, order)
        assert (ran.error, ran.output) == (None, {"charge": "charge 17", "cents": 900, "boxes": [1, 2]})
    assert called == ["a", "b"]


@pytest.mark.parametrize("task", [sell, sell_async])
def test_a_wait_that_nothing_ends_is_over_after_its_time(task: Task[Order, dict[str, Any]]) -> None:
    assert TestJob().run(task, order).output == {"charge": "charge 17"}


def test_a_call_whose_job_fails_fails_the_job_of_the_handler() -> None:
    def run(attempt: Attempt) -> Box:
        return attempt.call(pack, Item(item="a"), name="first")

    job = TestJob()
    assert job.next(run, None).snooze == 30 * DAY

    def fail(_payload: Any) -> Any:
        raise ValueError("no box")

    job.calls["shop.pack"] = fail
    error = job.next(run, None).error
    assert isinstance(error, CallFailed)
    assert error.result["errorCode"] == "WORKER.CHILD_FAILED"
    assert error.result["retryable"] is False
    assert str(error).startswith("first: job ")
    assert str(error).endswith(" is FAILED: TEST.FAILED: no box")


def test_an_event_is_given_once_and_a_name_is_used_once() -> None:
    def twice(attempt: Attempt) -> list[Any]:
        return [attempt.receive("shop.paid", name=name, timeout=1) for name in ("one", "two")]

    job = TestJob()
    job.events = [TestEvent("shop.paid", 1)]
    first, second = job.run(twice, None).output
    assert (first.data, second) == (1, None)

    def clash(attempt: Attempt) -> Any:
        return attempt.step("paid", lambda: 1), attempt.receive("shop.paid", name="paid")

    assert "two steps of the name paid" in str(TestJob().run(clash, None).error)
