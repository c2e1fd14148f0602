"""A test kit: one job, whose attempts a test runs one after another, without a gateway."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from ._checkpoint import Checkpoint, KeptStep, NewStep
from ._testwaits import TestEvent, TestWaits
from .attempt import Attempt, Outcome
from .task import AsyncTask, Task

Handler: TypeAlias = Task[Any, Any] | AsyncTask[Any, Any] | Callable[[Attempt], Any]


@dataclass(frozen=True)
class TestStep:
    """A step that attempts of a job have stored, or a sleep."""

    __test__ = False  # no test of pytest

    name: str
    result: Any = None
    """What the step has returned; a sleep has none."""
    until: datetime | None = None
    """The end of a sleep."""


@dataclass
class Ran:
    """What one attempt has done."""

    attempt: int
    """From 1."""
    output: Any = None
    error: Exception | None = None
    """What the handler has raised, unless the attempt was snoozed or waits."""
    snooze: float | None = None
    """The job runs again after so many seconds."""
    wait: float | None = None
    """An outside system must call back within so many seconds."""
    died: bool = False
    """It ended as if its process had been killed."""
    saves: list[Any] = field(default_factory=list)
    """The checkpoints that it has stored."""
    steps: list[TestStep] = field(default_factory=list)
    """The steps and sleeps that it has stored."""
    log: list[str] = field(default_factory=list)
    """Its lines, such as "info charged"."""
    progress: str | None = None
    """The last one, such as "40% half of it"."""


class _Died(BaseException):
    """Ends a handler as if its process were killed: no `except Exception` catches it."""


class TestJob:
    """A job between its attempts. Its clock moves only by a snooze that run() passes.

    With die_before_save or die_after_save the next attempt ends as if its process were killed, right before its n-th save, of a
    checkpoint, step or sleep, is stored, or right after.
    """

    __test__ = False  # no test of pytest

    def __init__(self, *, die_before_save: int = 0, die_after_save: int = 0) -> None:
        self.job_id = uuid.uuid4()
        self.attempts = 0  # that have begun
        self.saved: Any = None  # the checkpoint; None: none
        self.steps: list[TestStep] = []
        """The steps and sleeps that its attempts have stored, in their order."""
        self.die_before_save, self.die_after_save = die_before_save, die_after_save
        self.now = datetime.now(UTC).replace(microsecond=0)  # what its attempts take for the present
        self.events: list[TestEvent] = []
        """Events that have come: the handler gets each of them once, the first that fits."""
        self.calls: dict[str, Callable[[Any], Any]] = {}
        """What the calls of the handler return, or raise, by the type of the task. A call of another type does not end."""
        self._waits = TestWaits(self)

    def next(self, handler: Handler, payload: Any) -> Ran:
        """Runs the next attempt with a task, or with a handler."""
        return asyncio.run(self._next(handler, payload))

    def run(self, handler: Handler, payload: Any) -> Ran:
        """Runs attempts until one is neither snoozed nor dead.

        Each snooze passes at once: what has not come by its end comes no more.
        """
        while True:
            ran = self.next(handler, payload)
            if ran.snooze is None and not ran.died:
                return ran
            self.now += timedelta(seconds=ran.snooze or 0)

    async def _next(self, handler: Handler, payload: Any) -> Ran:
        self.attempts += 1
        ran = Ran(self.attempts)
        cancelled = threading.Event()
        store = _Saves(self, ran, cancelled, self.die_before_save, self.die_after_save)
        self.die_before_save = self.die_after_save = 0

        task = handler if isinstance(handler, Task | AsyncTask) else None
        function: Callable[[Attempt], Any] = task.handler if task else handler
        attempt = Attempt(
            job_id=self.job_id,
            attempt=self.attempts,
            job_type=task.job_type if task else "TEST",
            queue="pull",
            owner_id=None,
            trace_id=self.job_id,
            tags=[],
            payload=task.dumped(payload) if task else copy.deepcopy(payload),
            deadline=self.now + timedelta(minutes=10),
            callback=None,
            cancelled=cancelled,
        )
        attempt._kept, attempt._loop = Checkpoint(self.saved, self.attempts, store, lambda: self.now), asyncio.get_running_loop()
        attempt.checkpoint = attempt._kept.own
        attempt._ask = self._waits.ask
        try:
            try:
                if inspect.iscoroutinefunction(function):
                    ran.output = await function(attempt)
                else:
                    ran.output = await asyncio.to_thread(function, attempt)
            finally:
                running = [asyncio.wrap_future(step.over) for step in attempt._kept.close()]
                if running and not ran.died:
                    await asyncio.wait(running)
        except _Died:
            pass
        except Exception as error:
            status = error.result["status"] if isinstance(error, Outcome) else None
            if status == "SNOOZED":
                ran.snooze = error.result["delayMs"] / 1000  # type: ignore[attr-defined]
            elif status == "WAITING":
                ran.wait = error.result["callbackTimeoutMs"] / 1000  # type: ignore[attr-defined]
            else:
                ran.error = error
        ran.log = [f"{line['level']} {line['text']}" for line in attempt._lines]
        if attempt._progress:
            ran.progress = f"{attempt._progress['percent']}% {attempt._progress['message'] or ''}"
        return ran


class _Saves:
    """The saves of one attempt of a TestJob."""

    def __init__(self, job: TestJob, ran: Ran, cancelled: threading.Event, before: int, after: int) -> None:
        self._job, self._ran, self._cancelled, self._before, self._after = job, ran, cancelled, before, after
        self._count = 0

    async def save(self, _number: int, checkpoint: str, /) -> None:
        def store() -> None:
            self._job.saved = json.loads(checkpoint)
            self._ran.saves.append(self._job.saved)

        self._save(store)

    async def save_step(self, step: NewStep, /) -> KeptStep:
        def store() -> None:
            if all(known.name != step.name for known in self._job.steps):
                one = TestStep(step.name, None if step.result is None else json.loads(step.result), step.until)
                self._job.steps.append(one)
                self._ran.steps.append(one)

        self._save(store)
        return next(kept for kept in await self.read_steps() if kept.name == step.name)

    async def read_steps(self) -> list[KeptStep]:
        return [KeptStep(step.name, copy.deepcopy(step.result), step.until) for step in self._job.steps]

    def _save(self, store: Callable[[], None]) -> None:
        """Stores something, unless the attempt dies before."""
        if self._ran.died:
            raise _Died
        self._count += 1
        if self._count != self._before:
            store()
        if self._count in (self._before, self._after):
            self._ran.died = True
            self._cancelled.set()
            raise _Died
