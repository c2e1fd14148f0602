"""The attempts that handlers of a pull worker get, and the exceptions that they raise."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import math
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar
from uuid import UUID

from .errors import JobWeaverError
from .models import Callback, Parent, ReceivedEvent, WorkCalledJob, WorkWaitAnswer, WorkWaitState

if TYPE_CHECKING:
    from ._checkpoint import Checkpoint, KeptStep
    from .task import _Task

T = TypeVar("T")
P = TypeVar("P")
R = TypeVar("R")

Level: TypeAlias = Literal["debug", "info", "warn", "error"]
AbortReason: TypeAlias = Literal["cancelled", "lost", "deadline", "stop"]

LINES_KEPT = 1_000  # of one attempt, while heartbeats fail
ASKED = 20  # waits of a request


@dataclass(eq=False)
class Attempt:
    """An attempt that a handler runs. job_id and attempt together fence its side effects: no other attempt has both.

    `cancelled` is set when the attempt should end; `reason` then has the cause. The task of an asyncio handler is also cancelled.
    """

    job_id: UUID
    attempt: int
    """The number of the attempt, from 1."""
    job_type: str
    queue: str
    owner_id: str | None
    trace_id: UUID
    tags: list[str] | None
    """The tags of the job; None if the gateway could not read them."""
    payload: Any
    deadline: datetime
    callback: Callback | None
    """The secret with which an outside system ends the attempt after WaitForCallback; None if no outside system can."""
    parents: list[Parent] = field(default_factory=list)
    """The jobs of the flow to whose outputs the payload refers, with these outputs."""
    event: dict[str, str | int | bool] | None = None
    """The attributes of the CloudEvent that submitted the job; None if none did."""
    checkpoint: Any = None
    """What the job's earlier attempts have saved last; None if nothing."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    reason: AbortReason | None = None
    _progress: dict[str, Any] | None = None
    _lines: list[dict[str, str]] = field(default_factory=list)  # not yet sent in a heartbeat
    _closed: bool = False
    _kept: Checkpoint = field(default_factory=lambda: _unsaved())
    _loop: asyncio.AbstractEventLoop | None = None  # in which the worker saves; None in a test
    _ask: Callable[[list[dict[str, Any]]], Coroutine[Any, Any, WorkWaitAnswer]] = field(default_factory=lambda: _alone)

    def progress(self, percent: float, message: str | None = None) -> None:
        """Reports the progress of the attempt, from 0 to 100."""
        if not math.isfinite(percent):
            text = f"the progress has no JSON form: percent is {percent}"
            raise NotRetryable(text, error_code="WORKER.INVALID_OUTPUT")
        if not self._closed:
            self._progress = {"percent": round(min(100, max(0, percent))), "message": message and clean(message, 1000)}

    def log(self, text: str, level: Level = "info") -> None:
        """Adds a line to the job's log."""
        if not self._closed and len(self._lines) < LINES_KEPT:
            self._lines.append({"level": level, "text": clean(text, 16_384)})

    def save(self, value: Any) -> None:
        """Saves a value of at most 64 KiB of JSON in place of the last one.

        When it returns, the value is stored, and the job's next attempt has it as its checkpoint. It may be called for a moment
        after the attempt should have ended. In a coroutine await asave(), and likewise astep() and asleep().
        """
        self._wait(self.asave(value))

    async def asave(self, value: Any) -> None:
        await to_its_end(self._there(self._kept.save(value)))

    def step(self, name: str, run: Callable[[], T]) -> T:
        """Runs a part of the handler and remembers its result.

        If an attempt of the job has a result of this name already, step() returns that, and does not run it again. Either way the
        result has been through JSON. A step that fails is not remembered. If the process dies after the step had its effect and
        before the result is stored, the step runs again: give the systems that it calls job_id and the step's name as
        idempotency key. Each step of an attempt has another name. Steps may run side by side: if the handler ends while
        steps run, its attempt ends when their results are stored, and no further step begins.
        """
        with self._kept.running(name):
            if known := self._wait(self._begin_step(name)):
                return known.result  # type: ignore[no-any-return]
            began = time.monotonic()
            try:
                value = run()
            except BaseException:
                self._kept.free(name)
                raise
            return self._wait(self._kept.remember(name, value, time.monotonic() - began))  # type: ignore[no-any-return]

    async def astep(self, name: str, run: Callable[[], T | Awaitable[T]]) -> T:
        with self._kept.running(name, _cancel_of_task()):
            if known := await self._begin_step(name):
                return known.result  # type: ignore[no-any-return]
            began = time.monotonic()
            try:
                value = run()
                if inspect.isawaitable(value):
                    value = await value
            except BaseException:
                self._kept.free(name)
                raise
            return await to_its_end(self._there(self._kept.remember(name, value, time.monotonic() - began)))

    def sleep(self, name: str, seconds: float) -> None:
        """Pauses between steps without keeping a slot: it raises Snooze until the time has passed, and then returns."""
        self._wait(self.asleep(name, seconds))

    async def asleep(self, name: str, seconds: float) -> None:
        self._stop_here()
        await self._there(self._kept.sleep(name, seconds))

    def receive(
        self,
        event_type: str,
        *,
        name: str | None = None,
        match: dict[str, str | float | bool | None] | None = None,
        source: str | None = None,
        subject: str | None = None,
        timeout: float | None = None,
    ) -> ReceivedEvent | None:
        """Waits for a CloudEvent that is sent to the gateway, by a client, a hook, a trigger or a person.

        It returns the event also if it came before, and None if the `timeout` of so many seconds is over. Until then it raises
        Snooze: the handler keeps no slot, and is called again when the event has come. `match` has members that the data must
        have, by their paths: {"order.id": "A-17"}. An event is given to a job once. `name`, by default the type, must differ from
        those of the attempt's steps and other waits. In a coroutine await areceive(), and likewise acall() and acall_all().
        """
        return self._wait(self.areceive(event_type, name=name, match=match, source=source, subject=subject, timeout=timeout))

    async def areceive(
        self,
        event_type: str,
        *,
        name: str | None = None,
        match: dict[str, str | float | bool | None] | None = None,
        source: str | None = None,
        subject: str | None = None,
        timeout: float | None = None,
    ) -> ReceivedEvent | None:
        wait: dict[str, Any] = {
            "name": name or event_type,
            "event": {"type": event_type, "match": match, "source": source, "subject": subject},
            "timeoutMs": None if timeout is None else millis(timeout),
        }
        return (await self._states([wait]))[0].event

    def call(self, task: _Task[Any, P, R], payload: P, *, name: str | None = None, **members: Any) -> R:
        """Submits a job of a task and returns its output once it is COMPLETED; raises CallFailed if it ends otherwise.

        Until then it raises Snooze, as receive() does. However often the handler is called, a call makes one job, which is
        cancelled if the handler's job ends first. `name` is by default the task's type. The worker's API key needs the role
        submit, too.
        """
        return self._wait(self.acall(task, payload, name=name, **members))

    async def acall(self, task: _Task[Any, P, R], payload: P, *, name: str | None = None, **members: Any) -> R:
        wait = {"name": name or task.job_type, "job": _request(task, payload, members)}
        return _output(task, (await self._states([wait]))[0])

    def call_all(self, task: _Task[Any, P, R], payloads: Iterable[P], *, name: str | None = None, **members: Any) -> list[R]:
        """call() for many payloads. The handler is called again when all jobs have ended; the outputs are in their order."""
        return self._wait(self.acall_all(task, payloads, name=name, **members))

    async def acall_all(self, task: _Task[Any, P, R], payloads: Iterable[P], *, name: str | None = None, **members: Any) -> list[R]:
        name = name or task.job_type
        waits = [
            {"name": f"{name} {i}", "group": name, "job": _request(task, payload, members)} for i, payload in enumerate(payloads)
        ]
        return [_output(task, state) for state in await self._states(waits)]

    async def _states(self, waits: list[dict[str, Any]]) -> list[WorkWaitState]:
        """How waits stand once none is open; until then it raises Snooze."""
        self._stop_here()
        for wait in waits:
            self._kept.use(wait["name"])
        states: list[WorkWaitState] = []
        delays: list[int] = []
        for begin in range(0, len(waits), ASKED):
            answer = await self._there(self._ask(waits[begin : begin + ASKED]))
            states += answer.waits
            if answer.delay_ms is not None:
                delays.append(answer.delay_ms)
        if delays:
            raise Snooze(min(delays) / 1000)
        return states

    async def _begin_step(self, name: str) -> KeptStep | None:
        self._stop_here()
        known = await self._there(self._kept.begin_step(name))
        self._stop_here()
        return known

    def _stop_here(self) -> None:
        """No step begins after the attempt should have ended."""
        if self.cancelled.is_set():
            raise InterruptedError(f"the attempt should end: {self.reason}")

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(work) if self._loop is None else asyncio.run_coroutine_threadsafe(work, self._loop).result()
        work.close()
        raise RuntimeError("in a coroutine await asave(), astep() or asleep()")

    async def _there(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the event loop of the worker."""
        if self._loop is None or self._loop is asyncio.get_running_loop():
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


def _cancel_of_task() -> Callable[[], object]:
    """Returns a function with which any thread cancels the current task."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def cancel() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(task.cancel)  # type: ignore[union-attr]

    return cancel


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Awaits a save to its end even if the caller is cancelled meanwhile, since the step has had its effect.

    The caller is cancelled after that. A save ends soon: it is not repeated once the attempt is lost.
    """
    saving = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(saving)
    except asyncio.CancelledError:
        while not saving.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({saving})
        if not saving.cancelled():
            saving.exception()  # else it is never retrieved
        raise


def _unsaved() -> Checkpoint:
    """The checkpoint of an attempt that a test has made: it is stored nowhere."""
    from ._checkpoint import Checkpoint, KeptStep, NewStep

    class Nowhere:
        async def save(self, _number: int, _checkpoint: str, /) -> None: ...

        async def save_step(self, step: NewStep, /) -> KeptStep:
            return KeptStep(step.name, None if step.result is None else json.loads(step.result), step.until)

        async def read_steps(self) -> list[KeptStep]:
            return []

    return Checkpoint(None, 1, Nowhere())


async def _alone(_waits: list[dict[str, Any]]) -> WorkWaitAnswer:
    raise RuntimeError("an attempt that a test has made waits for nothing: use TestJob")


def _request(task: _Task[Any, P, Any], payload: P, members: dict[str, Any]) -> dict[str, Any]:
    return task.request(payload, **members).model_dump(mode="json", by_alias=True, exclude_unset=True)


def _output(task: _Task[Any, Any, R], state: WorkWaitState) -> R:
    if state.job is None or state.job.status != "COMPLETED":
        raise CallFailed(state.name, state.job)
    return task.output_from(state.job.output)


class Outcome(JobWeaverError):
    """Base of the exceptions that decide an outcome. Any other exception fails the attempt, and the job may be retried."""

    def __init__(self, text: str, status: str, /, **more: Any) -> None:
        super().__init__(text)
        self.result: dict[str, Any] = {"status": status, **{name: value for name, value in more.items() if value is not None}}


class AttemptFailed(Outcome):
    """Fails the attempt with an error code. The job's retry policy decides whether there is another one, and when."""

    def __init__(self, message: str, *, error_code: str | None = None, **more: Any) -> None:
        super().__init__(message, "FAILED", message=clean(message, 4096), errorCode=error_code, **more)


class NotRetryable(AttemptFailed):
    """Fails the attempt and with it the job: another attempt would fail, too."""

    def __init__(self, message: str, *, error_code: str | None = None) -> None:
        super().__init__(message, error_code=error_code, retryable=False)


class CallFailed(NotRetryable):
    """The job of a call has not completed. It fails the handler's job without a retry: the called job had retries of its own.

    If the handler's job is retried by hand, it calls again.
    """

    def __init__(self, call: str, job: WorkCalledJob | None) -> None:
        self.call, self.job = call, job
        status, job_id = (job.status, job.job_id) if job else ("FAILED", None)
        why = f": {job.last_error.error_code}: {job.last_error.message}" if job and job.last_error else ""
        super().__init__(f"{call}: job {job_id} is {status}{why}", error_code="WORKER.CHILD_FAILED")


class RetryAfter(AttemptFailed):
    """Fails the attempt. If a retry is left, it follows after so many seconds."""

    def __init__(self, seconds: float, message: str, *, error_code: str | None = None) -> None:
        super().__init__(message, error_code=error_code, retryAfterMs=millis(seconds))


class Snooze(Outcome):
    """Runs the job again after so many seconds. This costs no retry."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"snoozed for {seconds} s", "SNOOZED", delayMs=millis(seconds))


class WaitForCallback(Outcome):
    """Leaves the attempt to an outside system, which ends it by the attempt's callback within so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"waits for a callback for {seconds} s", "WAITING", callbackTimeoutMs=millis(seconds))


def millis(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def clean(text: object, most: int) -> str:
    """Text that the API accepts: of limited length, without lone surrogates and NUL."""
    return str(text)[:most].encode("utf-8", "replace").decode().replace("\0", "\ufffd")
