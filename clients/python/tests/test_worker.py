"""Worker, with a gateway of pull workers that has no network."""

import asyncio
import json as jsonlib
import logging
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from uuid import UUID, uuid5

import httpx
import pytest
from conftest import breaks, json
from pydantic import BaseModel, Field

from jobweaver import (
    AsyncClient,
    Attempt,
    AttemptFailed,
    ClientClosed,
    Forbidden,
    NotRetryable,
    RetryAfter,
    Snooze,
    WaitForCallback,
    Worker,
)

UNAVAILABLE = json(503, {"status": 503, "errorCode": "API.UNAVAILABLE", "message": "away"})
FORBIDDEN = json(403, {"status": 403, "errorCode": "API.FORBIDDEN", "message": "no"})


def settled(status: int, message: str = "", *details: dict[str, str]) -> Callable[[], httpx.Response]:
    error = {"errorCode": "API.A", "message": message, "details": details}
    return json(200, {"results": [{"token": "a", "status": status, "error": error}]})


class WorkGateway:
    """Hands out the attempts of a test, and records the requests."""

    def __init__(self) -> None:
        self.claims: list[dict[str, Any]] = []
        self.heartbeats: list[dict[str, Any]] = []
        self.results: list[dict[str, Any]] = []
        self.settles: list[int] = []  # how many results the requests had
        self.saves: list[dict[str, Any]] = []
        self.step_saves: list[dict[str, Any]] = []
        self.steps: dict[str, dict[str, Any]] = {}  # what is kept, by name: the first save counts
        self.step_reads: list[str | None] = []  # what the requests have as after
        self.step_page = 100  # steps in a page
        self.described: list[tuple[str, dict[str, Any]]] = []  # the definitions of tasks, by job type
        self.cancelled: list[str] = []  # tokens in the responses to heartbeats
        self.lost: list[str] = []
        self.instead: dict[str, list[Callable[[], httpx.Response | Exception]]] = {
            "claim": [],
            "heartbeat": [],
            "settle": [],
            "checkpoint": [],
            "steps": [],
            "read": [],
        }
        self.refuses_lines = False
        self.open = 0  # how many claims are open
        self.ahead = timedelta()  # how far its clock is ahead
        self._offered: list[dict[str, Any]] = []
        self._changes = asyncio.Condition()

    def client(self) -> AsyncClient:
        return AsyncClient("http://gateway", transport=httpx.MockTransport(self._answer))

    async def offer(self, token: str, **more: Any) -> None:
        """Gives an attempt to a claim."""
        self.hold(token, **more)
        await self.changed()

    def hold(self, token: str, *, seconds: float = 60, **more: Any) -> None:
        """Gives an attempt to a claim after the next change."""
        own: dict[str, Any] = {"jobId": str(uuid5(UUID(int=1), token)), "attempt": 1, "jobType": "A", "queue": "pull"}
        own |= {"ownerId": None, "callback": None, "tags": None}
        deadline = (datetime.now(UTC) + self.ahead + timedelta(seconds=seconds)).isoformat()
        self._offered.append(own | {"token": token, "traceId": str(UUID(int=2)), "deadline": deadline, "payload": token} | more)

    async def changed(self) -> None:
        async with self._changes:
            self._changes.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits until a condition holds. It is checked after each request, and when a test calls changed()."""
        async with self._changes:
            await self._changes.wait_for(condition)

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        what, body = request.url.path.rsplit("/", 1)[1], jsonlib.loads(request.content)
        if request.method == "PUT":
            self.described.append((request.url.path.removeprefix("/api/job-types/"), body))
            await self.changed()
            return httpx.Response(204)
        if what == "settle":
            self.settles.append(len(body["results"]))
        kept, new = {
            "claim": (self.claims, [body]),
            "heartbeat": (self.heartbeats, body.get("attempts")),
            "settle": (self.results, body.get("results")),
            "checkpoint": (self.saves, body.get("checkpoints")),
            "steps": (self.step_saves, [body]),
            "read": (self.step_reads, [body.get("after")]),
        }[what]
        kept += new
        if self.instead[what]:
            answer = self.instead[what].pop(0)()
        else:
            answer = await self._right(what, body)
        await self.changed()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _right(self, what: str, body: dict[str, Any]) -> httpx.Response:
        if what == "heartbeat" and self.refuses_lines and any(heartbeat["log"] for heartbeat in body["attempts"]):
            return httpx.Response(400)
        if what == "heartbeat":
            return httpx.Response(200, json={"cancelled": self.cancelled, "lost": self.lost})
        if what in ("settle", "checkpoint"):
            entries = body.get("results") or body["checkpoints"]
            return httpx.Response(200, json={"results": [{"token": r["token"], "status": 200} for r in entries]})
        if what == "steps":
            step = {"name": body["name"], "result": body.get("result"), "until": body.get("until")}
            step = self.steps.setdefault(body["name"], step)
            more = {"attempt": 1, "tookMs": body.get("tookMs"), "savedAt": datetime.now(UTC).isoformat()}
            return httpx.Response(200, json=step | more)
        if what == "read":
            names = sorted(name for name in self.steps if name > (body["after"] or ""))
            page = names[: self.step_page]
            following = page[-1] if len(names) > len(page) else None
            return httpx.Response(200, json={"steps": [self.steps[name] for name in page], "next": following})
        self.open += 1
        await self.changed()
        try:
            await self.until(lambda: len(self._offered) > 0)
        finally:
            self.open -= 1
        got, self._offered = self._offered[: body["slots"]], self._offered[body["slots"] :]
        date = format_datetime(datetime.now(UTC) + self.ahead, usegmt=True)
        return httpx.Response(200, json={"attempts": got}, headers={"Date": date})


@asynccontextmanager
async def working(
    handler: Callable[[Attempt], Any], **options: Any
) -> AsyncIterator[tuple[WorkGateway, Worker, asyncio.Task[None]]]:
    gateway = WorkGateway()
    worker = Worker(gateway.client(), **{"concurrency": 1, "heartbeat": 0.005, "grace": 0, **options})
    worker.handler("A")(handler)
    task = asyncio.create_task(worker.serve())
    try:
        yield gateway, worker, task
    finally:
        task.cancel()
        await asyncio.wait({task})


def play(main: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(main(), 30)

    asyncio.run(bounded())


class Size(BaseModel):
    pixels: int = Field(alias="width")


def fails(error: BaseException) -> Callable[[], Any]:
    def fail() -> None:
        raise error

    return fail


INVALID: dict[str, Any] = {"status": "FAILED", "errorCode": "WORKER.INVALID_OUTPUT", "retryable": False}

OUTCOMES: list[tuple[Callable[[], Any], dict[str, Any]]] = [
    (lambda: {"width": 640}, {"status": "COMPLETED", "output": {"width": 640}}),
    (lambda: Size(width=640), {"status": "COMPLETED", "output": {"width": 640}}),
    (lambda: None, {"status": "COMPLETED"}),
    (lambda: float("nan"), INVALID | {"message": "the output has no JSON form: output is nan"}),
    (object, INVALID | {"message": "the output has no JSON form: output is a object"}),
    (fails(ValueError("a \0 text \ud800")), {"status": "FAILED", "message": "a \ufffd text ?"}),
    (fails(KeyError()), {"status": "FAILED", "message": "KeyError"}),
    (fails(AttemptFailed("no", error_code="A.B")), {"status": "FAILED", "errorCode": "A.B", "message": "no"}),
    (fails(NotRetryable("no")), {"status": "FAILED", "retryable": False, "message": "no"}),
    (fails(RetryAfter(0.0016, "busy")), {"status": "FAILED", "retryAfterMs": 2, "message": "busy"}),
    (fails(Snooze(0)), {"status": "SNOOZED", "delayMs": 1}),
    (fails(WaitForCallback(60)), {"status": "WAITING", "callbackTimeoutMs": 60_000}),
]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["threads", "asyncio"])
def test_what_a_handler_returns_or_raises_becomes_the_result(asynchronous: bool) -> None:
    def handle(attempt: Attempt) -> Any:
        return OUTCOMES[attempt.payload][0]()

    async def handle_async(attempt: Attempt) -> Any:
        await asyncio.sleep(0)
        return handle(attempt)

    async def main() -> None:
        handler = handle_async if asynchronous else handle
        async with working(handler, concurrency=3, name="me", queues=["pull"]) as (gateway, _, _):
            for i in range(len(OUTCOMES)):
                await gateway.offer(str(i), payload=i)
            await gateway.until(lambda: len(gateway.results) == len(OUTCOMES))
            got = {int(result.pop("token")): result for result in gateway.results}
            assert [got[i] for i in range(len(OUTCOMES))] == [result for _, result in OUTCOMES]
            claim = {"worker": "me", "types": ["A"], "queues": ["pull"], "wait": "10000ms", "slots": 3}
            assert gateway.claims[0] == claim
            assert all(each["slots"] <= 3 for each in gateway.claims)

    play(main)


def test_sys_exit_in_a_thread_ends_the_attempt_only() -> None:
    async def main() -> None:
        async with working(lambda _: sys.exit(1)) as (gateway, _, _):
            await gateway.offer("a")
            await gateway.until(lambda: len(gateway.results) == 1)
            assert gateway.results[0]["message"] == "the handler ended with SystemExit(1)"

    play(main)


def test_no_more_attempts_run_than_there_are_slots() -> None:
    running, most, lock, ends = 0, 0, threading.Lock(), threading.Semaphore(0)

    def handle(_: Attempt) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        ends.acquire()
        with lock:
            running -= 1

    async def main() -> None:
        async with working(handle, concurrency=2) as (gateway, _, _):
            for token in "abcde":
                await gateway.offer(token)
            await gateway.until(lambda: running == 2)  # checked with each heartbeat
            for _ in range(5):
                ends.release()
            await gateway.until(lambda: len(gateway.results) == 5)
        assert most == 2

    play(main)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["threads", "asyncio"])
@pytest.mark.parametrize("reason", ["cancelled", "lost", "deadline", "stop"])
def test_an_attempt_ends_before_its_time(reason: str, asynchronous: bool, caplog: pytest.LogCaptureFixture) -> None:
    reasons: list[str | None] = []

    def handle(attempt: Attempt) -> None:
        if attempt.payload == "a":
            attempt.cancelled.wait()
            reasons.append(attempt.reason)
            raise ValueError("ended")

    async def handle_async(attempt: Attempt) -> None:
        if attempt.payload == "a":
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                reasons.append(attempt.reason)
                raise ValueError("ended") from None

    async def main() -> None:
        async with working(handle_async if asynchronous else handle) as (gateway, worker, task):
            await gateway.offer("a", seconds=0.02 if reason == "deadline" else 60)
            await gateway.until(lambda: bool(gateway.heartbeats or gateway.results))
            if reason == "stop":
                worker.stop()
                await task
                assert gateway.results == [{"token": "a", "status": "SNOOZED", "delayMs": 1}]
                return
            {"cancelled": gateway.cancelled, "lost": gateway.lost, "deadline": []}[reason].append("a")
            await gateway.offer("b")
            await gateway.until(lambda: any(result["token"] == "b" for result in gateway.results))
            results = [result for result in gateway.results if result["token"] == "a"]
            late = {"errorCode": "WORKER.TIMEOUT"} if reason == "deadline" else {}
            assert results == ([] if reason == "lost" else [{"token": "a", "status": "FAILED", "message": "ended", **late}])

    play(main)
    assert reasons == [reason]
    assert not caplog.records


def test_a_handler_that_ignores_that_its_attempt_is_lost_keeps_its_slot() -> None:
    attempts, end = [], threading.Event()

    def handle(attempt: Attempt) -> None:
        if attempt.payload == "a":
            attempts.append(attempt)
            end.wait()

    async def main() -> None:
        async with working(handle) as (gateway, _, _):
            await gateway.offer("a")
            await gateway.until(lambda: bool(attempts))  # checked with each heartbeat
            gateway.lost.append("a")
            await asyncio.to_thread(attempts[0].cancelled.wait)
            await gateway.offer("b")
            claims = len(gateway.claims)
            end.set()
            await gateway.until(lambda: bool(gateway.results))
            assert [result["token"] for result in gateway.results] == ["b"]  # a lost attempt is not settled
            assert claims == 1

    play(main)


def test_a_gateway_that_stands_still_keeps_a_worker_from_claiming_for_20_s_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead, really = 0.0, time.monotonic

    async def main() -> None:
        nonlocal ahead
        monkeypatch.setattr("jobweaver.worker.time.monotonic", lambda: really() + ahead)
        async with working(lambda _: None) as (gateway, _, _):
            await gateway.until(lambda: gateway.open == 1)
            ahead = 20
            await gateway.until(lambda: len(gateway.claims) == 2 and gateway.open == 1)
            await gateway.offer("a")
            await gateway.until(lambda: bool(gateway.results))
            assert {claim["wait"] for claim in gateway.claims} == {"10000ms"}

    play(main)


def test_an_attempt_without_an_answered_heartbeat_for_10_s_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead, reasons, really = 0.0, [], time.monotonic

    async def handle(attempt: Attempt) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            reasons.append(attempt.reason)

    async def main() -> None:
        nonlocal ahead
        monkeypatch.setattr("jobweaver.worker.time.monotonic", lambda: really() + ahead)
        async with working(handle) as (gateway, _, _):
            await gateway.offer("a")
            await gateway.until(lambda: bool(gateway.heartbeats))
            gateway.instead["heartbeat"] = [UNAVAILABLE] * 10_000
            await gateway.until(lambda: len(gateway.instead["heartbeat"]) < 9_998)
            assert not reasons
            ahead = 10
            await gateway.until(lambda: bool(reasons))
            assert reasons == ["lost"]

    play(main)


def test_deadlines_are_by_the_gateways_clock() -> None:
    async def main() -> None:
        async with working(lambda attempt: attempt.cancelled.wait(0.1)) as (gateway, _, _):
            gateway.ahead = -timedelta(hours=1)
            await gateway.offer("a")
            await gateway.until(lambda: bool(gateway.results))
            assert gateway.results[0]["output"] is False

    play(main)


@pytest.mark.parametrize(
    ("answers", "times", "logged"),
    [
        ([settled(503), settled(409, "over")], 2, "409: over"),
        ([UNAVAILABLE], 2, ""),
        ([breaks(), breaks()], 3, ""),
        ([json(200, "no JSON of a result")], 2, ""),
        ([FORBIDDEN], 1, "403"),
    ],
    ids=["503 and then 409", "503 of the gateway", "a broken connection", "nonsense", "403"],
)
def test_a_result_is_sent_again_until_it_is_known_what_became_of_it(
    answers: list[Any], times: int, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with working(lambda _: 1) as (gateway, _, _):
            gateway.instead["settle"] = list(answers)
            await gateway.offer("a")
            await gateway.until(lambda: gateway.open > 0 and len(gateway.claims) == 2)  # the slot is free again
            assert gateway.results == [{"token": "a", "status": "COMPLETED", "output": 1}] * times

    play(main)
    assert len(caplog.records) == (1 if logged else 0)
    assert logged in caplog.text


def test_a_result_that_the_gateway_cannot_use_fails_the_attempt() -> None:
    async def main() -> None:
        async with working(lambda _: 1) as (gateway, _, _):
            detail = {"path": "output", "message": "must have at most 262144 bytes"}
            gateway.instead["settle"] = [settled(400, "invalid result", detail)]
            await gateway.offer("a")
            await gateway.until(lambda: len(gateway.results) == 2)
            message = "invalid result; output must have at most 262144 bytes"
            code = "WORKER.INVALID_OUTPUT"
            assert gateway.results[1] == {
                "token": "a", "status": "FAILED", "errorCode": code, "message": message, "retryable": False
            }  # fmt: skip

    play(main)


def test_progress_and_log_lines_arrive_before_the_result_in_their_order() -> None:
    def handle(attempt: Attempt) -> None:
        for i in range(250):
            attempt.log(f"line {i}", "warn" if i == 0 else "info")
        attempt.log("é\0" * 20_000)
        attempt.progress(33.4, "a third")

    async def main() -> None:
        async with working(handle, heartbeat=60) as (gateway, _, _):
            gateway.instead["heartbeat"] = [UNAVAILABLE]
            await gateway.offer("a")
            await gateway.until(lambda: len(gateway.results) == 1)
            assert len(gateway.heartbeats) == 1  # the outcome does not wait for a failing heartbeat
            await gateway.offer("b")
            await gateway.until(lambda: len(gateway.results) == 2)
            first, second = gateway.heartbeats[1:]
            assert first["progress"] == {"percent": 33, "message": "a third"}
            assert (len(first["log"]), len(second["log"])) == (200, 51)
            assert first["log"][0] == {"level": "warn", "text": "line 0"}
            assert second["log"][49:] == [
                {"level": "info", "text": "line 249"},
                {"level": "info", "text": "é\ufffd" * 8192},
            ]

    play(main)


def test_a_line_that_the_gateway_refuses_does_not_hold_up_the_heartbeats() -> None:
    async def handle(attempt: Attempt) -> None:
        attempt.log("a line")
        await asyncio.sleep(60)

    async def main() -> None:
        async with working(handle) as (gateway, _, _):
            gateway.refuses_lines = True
            await gateway.offer("a")
            sent = gateway.heartbeats
            await gateway.until(lambda: len(sent) > 1 and not sent[-1]["log"] and bool(sent[-2]["log"]))
            assert [one["log"] for one in sent if one["log"]] == [[{"level": "info", "text": "a line"}]]

    play(main)


def test_a_message_of_the_gateway_that_has_its_details_already_is_not_doubled() -> None:
    async def main() -> None:
        async with working(lambda _: 1) as (gateway, _, _):
            gateway.instead["settle"] = [settled(400, "invalid result: output too long", {"path": "output", "message": "too long"})]
            await gateway.offer("a")
            await gateway.until(lambda: len(gateway.results) == 2)
            assert gateway.results[1]["message"] == "invalid result: output too long"

    play(main)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["threads", "asyncio"])
def test_results_that_come_while_a_request_is_under_way_are_settled_together(asynchronous: bool) -> None:
    async def handle(attempt: Attempt) -> None:
        attempt.log("a line")

    async def main() -> None:
        handler = handle if asynchronous else lambda attempt: attempt.log("a line")
        async with working(handler, concurrency=50, heartbeat=60) as (gateway, _, _):
            for i in range(500):
                gateway.hold(f"j{i}")
            await gateway.changed()
            await gateway.until(lambda: len(gateway.results) == 500)
            assert len(gateway.settles) <= 100  # and not 500
            assert len([heartbeat for heartbeat in gateway.heartbeats if heartbeat["log"]]) == 500

    play(main)


def test_a_result_because_of_which_a_whole_request_is_refused_does_not_harm_the_others() -> None:
    async def handle(_: Attempt) -> int:
        return 1

    async def main() -> None:
        async with working(handle, concurrency=3) as (gateway, _, _):
            for token in "abc":
                gateway.hold(token)
            gateway.instead["settle"] = [json(400, {}), json(413, {"errorCode": "API.TOO_LARGE", "message": "no"})]
            await gateway.changed()
            await gateway.until(lambda: len(gateway.results) == 7)
            assert gateway.settles == [3, 1, 1, 1, 1]
            ends = {result["token"]: result.get("errorCode", result["status"]) for result in gateway.results}
            assert list(ends.values()) == ["WORKER.INVALID_OUTPUT", "COMPLETED", "COMPLETED"]

    play(main)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["threads", "asyncio"])
def test_no_attempt_starts_while_the_handler_of_an_earlier_one_of_its_job_still_runs(asynchronous: bool) -> None:
    end = threading.Event()

    def handle(attempt: Attempt) -> int:
        if attempt.attempt == 1:
            end.wait()  # it ignores that it should end
        return attempt.attempt

    async def handle_async(attempt: Attempt) -> int:
        while attempt.attempt == 1 and not end.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        return attempt.attempt

    async def main() -> None:
        job = str(UUID(int=7))
        async with working(handle_async if asynchronous else handle, concurrency=2) as (gateway, _, _):
            await gateway.offer("first", jobId=job, seconds=0.02)
            await gateway.until(lambda: bool(gateway.heartbeats))
            await gateway.offer("second", jobId=job, attempt=2)
            await gateway.until(lambda: len(gateway.results) == 1)
            assert gateway.results[0] == {"token": "second", "status": "SNOOZED", "delayMs": 1000}
            line = next(sent["log"][0] for sent in gateway.heartbeats if sent["token"] == "second" and sent["log"])
            assert "still runs attempt 1 of this job" in line["text"]
            end.set()
            await gateway.until(lambda: len(gateway.results) == 2)
            await gateway.offer("third", jobId=job, attempt=3)
            await gateway.until(lambda: len(gateway.results) == 3)
            assert gateway.results[2] == {"token": "third", "status": "COMPLETED", "output": 3}

    play(main)


def test_an_attempt_has_the_members_of_the_protocol() -> None:
    seen: list[Attempt] = []
    parent = {"name": "charge", "jobId": str(UUID(int=3)), "output": {"id": 2**64}}

    async def main() -> None:
        async with working(lambda attempt: seen.append(attempt)) as (gateway, _, _):
            await gateway.offer("a", attempt=2, parents=[parent], event={"id": "order-17", "n": 7, "gift": True})
            await gateway.offer("b")
            await gateway.until(lambda: len(gateway.results) == 2)

    play(main)
    assert (seen[0].attempt, seen[0].parents[0].name, seen[0].parents[0].output) == (2, "charge", {"id": 2**64})
    assert seen[0].event == {"id": "order-17", "n": 7, "gift": True}
    assert (seen[1].parents, seen[1].event) == ([], None)


def test_stop_ends_a_claim_that_is_held() -> None:
    async def main() -> None:
        async with working(lambda _: 1) as (gateway, worker, task):
            await gateway.until(lambda: gateway.open == 1)
            await asyncio.to_thread(worker.stop)  # from another thread
            await task
            assert gateway.open == 0

    play(main)


@pytest.mark.parametrize("by", ["stop", "cancelling its task"])
def test_what_runs_may_end_within_the_grace_period(by: str) -> None:
    end = threading.Event()

    async def main() -> None:
        async with working(lambda _: end.wait(), grace=60) as (gateway, worker, task):
            await gateway.offer("a")
            await gateway.until(lambda: bool(gateway.heartbeats))
            worker.stop() if by == "stop" else task.cancel()
            heartbeats = len(gateway.heartbeats)
            await gateway.until(lambda: len(gateway.heartbeats) > heartbeats)  # they go on
            end.set()
            await asyncio.wait({task})
            assert task.cancelled() == (by != "stop")
            assert gateway.results == [{"token": "a", "status": "COMPLETED", "output": True}]
            assert len(gateway.claims) == 1

    play(main)


def test_stop_waits_for_a_handler_that_ignores_it_whose_attempt_must_not_start_elsewhere() -> None:
    end = threading.Event()

    async def main() -> None:
        async with working(lambda attempt: end.wait() and attempt.reason) as (gateway, worker, task):
            await gateway.offer("a")
            await gateway.until(lambda: bool(gateway.heartbeats))
            worker.stop()
            heartbeats = len(gateway.heartbeats)
            await gateway.until(lambda: len(gateway.heartbeats) > heartbeats + 2)
            assert not task.done()
            end.set()
            await task
            assert gateway.results == [{"token": "a", "status": "COMPLETED", "output": "stop"}]

    play(main)


def test_an_attempt_that_comes_with_the_last_answer_to_a_claim_is_given_back() -> None:
    async def main() -> None:
        async with working(lambda _: pytest.fail("it ran")) as (gateway, worker, task):
            await gateway.until(lambda: gateway.open == 1)
            worker.stop()
            await gateway.offer("a")
            await task
            assert gateway.results == [{"token": "a", "status": "SNOOZED", "delayMs": 1}]

    play(main)


def test_claims_go_on_after_errors_with_pauses_and_end_where_they_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with working(lambda _: 1) as (gateway, _, task):
            await gateway.until(lambda: gateway.open == 1)
            empty = lambda: httpx.Response(204)  # noqa: E731
            gateway.instead["claim"] = [UNAVAILABLE, breaks(), json(429, {}), empty, FORBIDDEN]
            begin = time.monotonic()
            await gateway.offer("a")
            with pytest.raises(Forbidden):
                await task
            assert time.monotonic() - begin >= 0.38  # the pauses grow: at least 50 + 100 + 200 ms, and 50 after the early answer

    play(main)
    assert len(caplog.records) == 3


def test_a_closed_client_ends_its_worker() -> None:
    async def main() -> None:
        gateway = WorkGateway()
        client = gateway.client()
        worker = Worker(client)
        worker.handler("A")(lambda _: 1)
        gateway.instead["claim"] = [UNAVAILABLE]
        task = asyncio.create_task(worker.serve())
        await gateway.until(lambda: len(gateway.claims) == 1)
        await client.aclose()
        with pytest.raises(ClientClosed):
            await task

    play(main)


def test_a_worker_runs_in_a_thread_or_a_task_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "asyncio")
    done = threading.Event()

    def worker() -> Worker:
        at = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()
        ids: dict[str, Any] = {"jobId": str(UUID(int=1)), "traceId": str(UUID(int=2)), "token": "a", "ownerId": None}
        ids |= {"callback": None, "tags": None}
        attempt = ids | {"attempt": 1, "jobType": "A", "queue": "pull", "deadline": at, "payload": None}

        def answer(request: httpx.Request) -> httpx.Response:
            if request.url.path.endswith("claim"):
                return httpx.Response(200, json={"attempts": [attempt]})
            return httpx.Response(200, json={"results": [{"token": "a", "status": 200}]})

        made = Worker(AsyncClient("http://gateway", transport=httpx.MockTransport(answer)))
        made.handler("A")(lambda _: done.set())
        return made

    with worker():
        assert done.wait(30)
    done.clear()

    async def main() -> None:
        async with worker() as own:
            assert await asyncio.to_thread(done.wait, 30)
        with pytest.raises(RuntimeError, match="once"):
            await own.serve()

    play(main)
    with worker():
        pass
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_worker_needs_a_handler_and_slots() -> None:
    client = AsyncClient("http://gateway")
    for concurrency in (0, 501):
        with pytest.raises(ValueError, match="concurrency"):
            Worker(client, concurrency=concurrency)
    with pytest.raises(ValueError, match="handler"):
        Worker(client).run()
    assert Worker(client).name != Worker(client).name
