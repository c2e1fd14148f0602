"""Checkpoints, steps and sleeps of handlers, in threads and in the event loop."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from conftest import breaks, json
from test_worker import UNAVAILABLE, WorkGateway, play, settled, working

from jobweaver import Attempt, NotRetryable, Snooze, Worker

BOTH = pytest.mark.parametrize("asynchronous", [False, True], ids=["threads", "asyncio"])


def attempts(
    handler: Callable[[Attempt], Any],
    count: int,
    *instead: Any,
    prepare: Callable[[WorkGateway], None] = lambda _: None,
    first: int = 1,
) -> WorkGateway:
    """Runs attempts of a job one after another, each with the checkpoint of the last one."""
    gateways = []

    async def main() -> None:
        async with working(handler) as (gateway, _, _):
            gateways.append(gateway)
            gateway.instead["checkpoint"] += instead
            prepare(gateway)
            for n in range(1, count + 1):
                saved = gateway.saves[-1]["checkpoint"] if gateway.saves else None
                await gateway.offer("a", attempt=first + n - 1, checkpoint=saved)
                await gateway.until(lambda n=n: len(gateway.results) == n)  # type: ignore[misc]

    play(main)
    return gateways[0]


def step(name: str, result: Any = None, until: str | None = None) -> dict[str, Any]:
    return {"name": name, "result": result, "until": until}


@BOTH
def test_a_handler_goes_on_from_its_checkpoint(asynchronous: bool) -> None:
    def pages(attempt: Attempt) -> list[int]:
        return list(range((attempt.checkpoint or {"page": 0})["page"] + 1, 5))

    def handle(attempt: Attempt) -> Any:
        for page in pages(attempt):
            attempt.save({"page": page})
            if attempt.attempt == 1 and page == 2:
                raise ValueError("it dies")
        return attempt.checkpoint

    async def handle_async(attempt: Attempt) -> Any:
        for page in pages(attempt):
            await attempt.asave({"page": page})
            if attempt.attempt == 1 and page == 2:
                raise ValueError("it dies")
        return attempt.checkpoint

    gateway = attempts(handle_async if asynchronous else handle, 2)
    assert [(s["number"], s["checkpoint"]["page"]) for s in gateway.saves] == [(1, 1), (2, 2), (1, 3), (2, 4)]
    assert gateway.results[1] == {"token": "a", "status": "COMPLETED", "output": {"page": 2}}


@BOTH
def test_a_step_runs_once_and_one_that_fails_is_not_remembered(asynchronous: bool) -> None:
    calls: list[str] = []

    def charge() -> Any:
        calls.append("charge")
        return {"id": (7, 8)}

    def mail() -> None:
        calls.append("mail")
        if len(calls) < 4:
            raise ValueError("no")

    def handle(attempt: Attempt) -> None:
        assert attempt.step("charge", charge) == {"id": [7, 8]}
        assert attempt.checkpoint == (None if attempt.attempt == 1 else "own")
        attempt.save("own")
        if attempt.attempt == 1:
            with pytest.raises(ValueError, match="no"):
                attempt.step("mail", mail)
        attempt.step("mail", mail)
        attempt.step(f"of attempt {attempt.attempt}", lambda: calls.append("changed code"))

    async def amail() -> None:
        mail()

    async def handle_async(attempt: Attempt) -> None:
        assert await attempt.astep("charge", charge) == {"id": [7, 8]}
        assert attempt.checkpoint == (None if attempt.attempt == 1 else "own")
        await attempt.asave("own")
        if attempt.attempt == 1:
            with pytest.raises(ValueError, match="no"):
                await attempt.astep("mail", amail)
        await attempt.astep("mail", amail)
        await attempt.astep(f"of attempt {attempt.attempt}", lambda: calls.append("changed code"))

    gateway = attempts(handle_async if asynchronous else handle, 3)
    assert [r["status"] for r in gateway.results] == ["FAILED", "COMPLETED", "COMPLETED"]
    assert calls == ["charge", "mail", "mail", "mail", "changed code", "changed code"]
    names = ["charge", "mail", "of attempt 2", "of attempt 3"]
    assert [(s["name"], s["result"]) for s in gateway.step_saves] == list(
        zip(names, [{"id": [7, 8]}, None, None, None], strict=True)
    )
    assert all(s["token"] == "a" and "until" not in s and isinstance(s["tookMs"], int) for s in gateway.step_saves)
    assert gateway.step_reads == [None, None]  # not in attempt 1
    assert [s["checkpoint"] for s in gateway.saves] == ["own"] * 3


@BOTH
def test_a_sleep_snoozes_until_its_instant(asynchronous: bool) -> None:
    def handle(attempt: Attempt) -> str:
        attempt.sleep("cool off", 60)
        return "rested"

    async def handle_async(attempt: Attempt) -> str:
        await attempt.asleep("cool off", 60)
        return "rested"

    handler = handle_async if asynchronous else handle
    gateway = attempts(handler, 2)
    first, second = gateway.results
    assert first["status"] == second["status"] == "SNOOZED"
    assert 59_000 < second["delayMs"] <= first["delayMs"] <= 60_000
    assert [s.keys() for s in gateway.step_saves] == [{"worker", "token", "name", "until"}]
    over = step("cool off", until=datetime.now(UTC).isoformat().replace("+00:00", "Z"))
    assert attempts(handler, 1, prepare=lambda g: g.steps.update({"cool off": over}), first=2).results[0]["output"] == "rested"


@BOTH
def test_steps_are_read_page_by_page_and_reads_and_saves_are_repeated_until_they_are_answered(asynchronous: bool) -> None:
    def prepare(gateway: WorkGateway) -> None:
        gateway.step_page = 2
        gateway.steps.update({name: step(name, name.upper()) for name in "abcde"})
        gateway.instead["read"] += [UNAVAILABLE, breaks()]
        gateway.instead["steps"] += [UNAVAILABLE, breaks()]

    def handle(attempt: Attempt) -> list[Any]:
        return [attempt.step(name, lambda: 1) for name in "acef"]

    async def handle_async(attempt: Attempt) -> list[Any]:
        return await asyncio.gather(*(attempt.astep(name, lambda: 1) for name in "acef"))

    gateway = attempts(handle_async if asynchronous else handle, 1, prepare=prepare, first=2)
    assert gateway.results[0] == {"token": "a", "status": "COMPLETED", "output": ["A", "C", "E", 1]}
    assert gateway.step_reads == [None, None, None, "b", "d"]
    assert [(s["name"], s["result"]) for s in gateway.step_saves] == [("f", 1)] * 3


def test_of_two_attempts_that_overlap_the_first_save_counts() -> None:
    def overlapped(gateway: WorkGateway) -> None:
        gateway.steps["charge"] = step("charge", "of the other attempt")

    result = attempts(lambda a: a.step("charge", lambda: "mine"), 1, prepare=overlapped).results[0]
    assert result["output"] == "of the other attempt"


class Circle(list[Any]):
    def __init__(self) -> None:
        super().__init__([self])


LARGE = "é" * 40_000


REFUSED = json(400, {"status": 400, "errorCode": "API.INVALID_JOB_REQUEST", "message": "steps: a job has at most 1000"})


@pytest.mark.parametrize(
    ("handle", "error_code", "message"),
    [
        (lambda a: a.save(LARGE), "WORKER.CHECKPOINT_TOO_LARGE", "80002 bytes"),
        (lambda a: a.step("a", lambda: LARGE * 4), "WORKER.OUTPUT_TOO_LARGE", "step a has run, and its result of 320002 bytes"),
        (lambda a: a.save(Circle()), "WORKER.INVALID_OUTPUT", "no JSON form"),
        (lambda a: a.step("a", object), "WORKER.INVALID_OUTPUT", "the result of step a has no JSON form"),
        (lambda a: (a.step("a", dict), a.step("a", dict)), "WORKER.STEP_REPEATED", "two steps of the name a"),
        (
            lambda a: a.step("slept", dict),
            "WORKER.STEP_REPEATED",
            "slept is a step in one attempt of the job and a sleep",
        ),
        (lambda a: a.sleep("ran", 1), "WORKER.STEP_REPEATED", "ran is a step in one attempt of the job and a sleep in another"),
        (lambda a: a.step("refused", lambda: 7), "API.INVALID_JOB_REQUEST", "at most 1000; the result begins with 7"),
    ],
)
def test_what_cannot_be_remembered_fails_the_job(handle: Callable[[Attempt], Any], error_code: str, message: str) -> None:
    def prepare(gateway: WorkGateway) -> None:
        gateway.steps.update(slept=step("slept", until="2026-11-29T00:00:00Z"), ran=step("ran", 1))
        if error_code.startswith("API."):
            gateway.instead["steps"].append(REFUSED)

    result = attempts(handle, 1, prepare=prepare).results[0]
    assert (result["status"], result["errorCode"], result["retryable"]) == ("FAILED", error_code, False)
    assert message in result["message"]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("", "must not be empty"),
        ("é" * 201, "must have at most 200 characters"),
        ("a\nb", 'must contain neither control characters nor surrogates: "a\\nb"'),
        ("a\x85", "control characters"),
        ("a\ud800", "surrogates"),
    ],
)
def test_a_name_that_the_gateway_refuses_fails_the_job_before_anything_runs(name: str, wrong: str) -> None:
    def fails(begin: Callable[[Attempt], Any]) -> None:
        gateway = attempts(begin, 1)
        result = gateway.results[0]
        assert (result["status"], result["errorCode"], result["retryable"]) == ("FAILED", "API.INVALID_JOB_REQUEST", False)
        assert wrong in result["message"]
        assert gateway.step_saves == []

    fails(lambda a: a.step(name, lambda: pytest.fail("it runs")))
    fails(lambda a: a.sleep(name, 1))
    if name:
        fails(lambda a: a.receive("B", name=name))


def test_a_name_may_have_200_characters_of_any_script() -> None:
    assert attempts(lambda a: a.step("\U0001f980" * 200, lambda: 7), 1).results[0]["output"] == 7


def test_a_save_is_repeated_until_it_is_stored() -> None:
    gateway = attempts(lambda a: a.save(1), 1, settled(503), breaks(), settled(200))
    assert gateway.results[0]["status"] == "COMPLETED"
    assert [s["number"] for s in gateway.saves] == [1, 1, 1]
    refused = attempts(lambda a: a.save(1), 1, settled(400, "duplicate names")).results[0]
    assert refused["message"] == "the checkpoint cannot be stored: duplicate names"


@BOTH
def test_an_attempt_that_is_over_saves_nothing(asynchronous: bool) -> None:
    seen: list[Any] = []

    def handle(attempt: Attempt) -> None:
        try:
            attempt.save(1)
        finally:
            seen.append(attempt.reason)

    async def handle_async(attempt: Attempt) -> None:
        try:
            await attempt.asave(1)
        finally:
            seen.append(attempt.reason)

    async def main() -> None:
        async with working(handle_async if asynchronous else handle, concurrency=2) as (gateway, _, _):
            gateway.instead["checkpoint"].append(settled(409))
            await gateway.offer("a")
            await gateway.until(lambda: len(gateway.saves) == 1 and len(gateway.claims) > 1)
            while not seen:  # noqa: ASYNC110 # it is set in a thread
                await asyncio.sleep(0.001)
            assert gateway.results == []

    play(main)
    assert seen == ["lost"]


@BOTH
def test_an_attempt_that_is_over_saves_no_step(asynchronous: bool) -> None:
    seen: list[Any] = []

    def handle(attempt: Attempt) -> None:
        try:
            attempt.step("a", lambda: 1)
        finally:
            seen.append(attempt.reason)

    async def handle_async(attempt: Attempt) -> None:
        try:
            await attempt.astep("a", lambda: 1)
        finally:
            seen.append(attempt.reason)

    async def main() -> None:
        async with working(handle_async if asynchronous else handle, concurrency=2) as (gateway, _, _):
            gateway.instead["steps"].append(json(409, {"status": 409, "errorCode": "API.ATTEMPT_OVER", "message": "over"}))
            await gateway.offer("a")
            await gateway.until(lambda: len(gateway.step_saves) == 1 and len(gateway.claims) > 1)
            while not seen:  # noqa: ASYNC110 # it is set in a thread
                await asyncio.sleep(0.001)
            assert (gateway.results, gateway.steps) == ([], {})

    play(main)
    assert seen == ["lost"]


@BOTH
def test_a_handler_may_save_when_its_worker_stops(asynchronous: bool) -> None:
    def handle(attempt: Attempt) -> None:
        attempt.cancelled.wait()
        attempt.save("so far")
        raise InterruptedError(attempt.reason)

    async def handle_async(attempt: Attempt) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await attempt.asave("so far")
            raise

    async def main() -> None:
        async with working(handle_async if asynchronous else handle) as (gateway, worker, task):
            await gateway.offer("a")
            await gateway.until(lambda: len(gateway.heartbeats) > 0)
            worker.stop()
            await task
            assert gateway.saves == [{"token": "a", "number": 1, "checkpoint": "so far"}]
            assert gateway.results == [{"token": "a", "status": "SNOOZED", "delayMs": 1}]

    play(main)


@pytest.mark.parametrize("blocking", [False, True], ids=["caller's loop", "own loop"])
def test_what_a_coroutine_has_done_is_saved_though_it_is_cancelled_meanwhile(blocking: bool) -> None:
    calls: list[str] = []

    async def handle(attempt: Attempt) -> str:
        charge = await attempt.astep("charge", lambda: calls.append("charge") or "charged")
        if attempt.attempt == 1:
            await attempt.asave("not reached")
        return charge

    async def main() -> None:
        gateway = WorkGateway()
        for attempt in (1, 2):
            worker = Worker(gateway.client(), concurrency=1, heartbeat=0.005, grace=0)
            worker.handler("A", blocking=blocking)(handle)
            running = asyncio.create_task(worker.serve())
            if attempt == 1:
                gateway.instead["steps"].append(lambda worker=worker: worker.stop() or UNAVAILABLE())  # type: ignore[misc]
            await gateway.offer("a", attempt=attempt)
            await gateway.until(lambda n=attempt: len(gateway.results) == n)  # type: ignore[misc]
            worker.stop()
            await running
        assert [s["name"] for s in gateway.step_saves] == ["charge", "charge"]
        assert (calls, gateway.saves) == (["charge"], [])
        assert [r["status"] for r in gateway.results] == ["SNOOZED", "COMPLETED"]
        assert gateway.results[1]["output"] == "charged"

    play(main)


KINDS = pytest.mark.parametrize("kind", ["threads", "caller's loop", "own loop"])


def in_thread(steps: Callable[[], object]) -> None:
    def run() -> None:
        with contextlib.suppress(InterruptedError):
            steps()

    threading.Thread(target=run).start()


def beside(kind: str, calls: list[str], other: str, seconds: float) -> Callable[[Attempt], Any]:
    """A handler that sleeps or fails beside a step, which another one follows."""

    def fail() -> None:
        raise NotRetryable("no")

    def charge() -> None:
        calls.append("charge")
        time.sleep(seconds)

    async def acharge() -> None:
        calls.append("charge")
        await asyncio.sleep(seconds)

    def both(attempt: Attempt) -> None:
        attempt.step("charge", charge)
        attempt.step("mail", lambda: calls.append("mail"))

    async def aboth(attempt: Attempt) -> None:
        await attempt.astep("charge", acharge)
        await attempt.astep("mail", lambda: calls.append("mail"))

    def handle(attempt: Attempt) -> None:
        in_thread(lambda: both(attempt))
        while not calls:
            time.sleep(0.001)
        if other == "sleep":
            attempt.sleep("cool off", 60)
        attempt.step("fail", fail)

    async def handle_async(attempt: Attempt) -> None:
        await asyncio.gather(aboth(attempt), attempt.asleep("cool off", 60) if other == "sleep" else attempt.astep("fail", fail))

    return handle if kind == "threads" else handle_async


def run_beside(kind: str, handler: Callable[[Attempt], Any], gateway: WorkGateway, **options: Any) -> None:
    async def main() -> None:
        worker = Worker(gateway.client(), concurrency=1, heartbeat=0.005, grace=30)
        worker.handler("A", blocking=kind == "own loop")(handler)
        running = asyncio.create_task(worker.serve())
        await gateway.offer("a", **options)
        await gateway.until(lambda: len(gateway.results) == 1)
        worker.stop()
        await running

    play(main)


@KINDS
@pytest.mark.parametrize("other", ["sleep", "fail"])
def test_an_attempt_ends_after_the_steps_that_its_handler_leaves_running(kind: str, other: str) -> None:
    calls: list[str] = []
    gateway = WorkGateway()
    run_beside(kind, beside(kind, calls, other, 0.2), gateway)
    assert gateway.results[0]["status"] == ("SNOOZED" if other == "sleep" else "FAILED")
    assert (calls, [name for name in gateway.steps if name != "cool off"]) == (["charge"], ["charge"])


@pytest.mark.parametrize("kind", ["caller's loop", "own loop"])
def test_a_step_that_runs_on_is_cancelled_with_its_attempt(kind: str) -> None:
    calls: list[str] = []
    gateway = WorkGateway()
    run_beside(kind, beside(kind, calls, "sleep", 60), gateway, seconds=0.3)
    assert (gateway.results[0]["status"], calls, list(gateway.steps)) == ("SNOOZED", ["charge"], ["cool off"])


def test_a_lost_attempt_waits_for_no_step() -> None:
    calls: list[str] = []
    end = threading.Event()

    def handle(attempt: Attempt) -> None:
        def deaf() -> None:
            calls.append("deaf")
            end.wait(20)

        if not calls:
            in_thread(lambda: attempt.step("deaf", deaf))
            while not calls:
                time.sleep(0.001)

    async def main() -> None:
        async with working(handle) as (gateway, _, _):
            gateway.lost.append("a")
            await gateway.offer("a")
            await gateway.until(lambda: len(gateway.heartbeats) > 0)
            await gateway.offer("b")
            await gateway.until(lambda: len(gateway.results) == 1)
            assert (gateway.results[0]["token"], calls, end.is_set()) == ("b", ["deaf"], False)
            end.set()

    play(main)


def test_a_coroutine_must_await() -> None:
    async def handle(attempt: Attempt) -> None:
        attempt.save(1)

    async def run(attempt: Attempt) -> None:
        attempt.step("a", lambda: pytest.fail("it runs"))

    for handler in (handle, run):
        assert "await asave()" in attempts(handler, 1).results[0]["message"]


def test_an_attempt_of_a_test_remembers_its_steps() -> None:
    now = datetime.now(UTC)
    attempt = Attempt(UUID(int=1), 1, "A", "pull", None, UUID(int=2), None, {}, now, None)
    assert attempt.step("a", lambda: 7) == 7
    with pytest.raises(NotRetryable):
        attempt.step("a", lambda: 7)
    with pytest.raises(Snooze):
        attempt.sleep("b", 1)
    attempt.cancelled.set()
    with pytest.raises(InterruptedError):
        attempt.step("c", lambda: 7)
