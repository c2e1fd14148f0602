"""The waits of a TestJob, as a gateway would keep them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from .models import LastErrorOrNull, ReceivedEvent, WorkCalledJob, WorkWaitAnswer, WorkWaitState

FOREVER = timedelta(days=30)  # that a wait without a timeout may let the job sleep


@dataclass(eq=False)
class TestEvent:
    """An event of a test."""

    __test__ = False  # no test of pytest

    type: str
    data: Any = None
    source: str = "/test"
    subject: str | None = None


class _Job(Protocol):
    now: datetime
    events: list[TestEvent]
    calls: dict[str, Callable[[Any], Any]]


class TestWaits:
    """Answers about the waits of one job."""

    __test__ = False

    def __init__(self, job: _Job) -> None:
        self._job = job
        self._states: dict[str, WorkWaitState] = {}
        self._taken: list[TestEvent] = []

    async def ask(self, waits: list[dict[str, Any]]) -> WorkWaitAnswer:
        states = [self._look(wait) for wait in waits]
        left = [(state.until - self._job.now) if state.until else FOREVER for state in states if state.status == "OPEN"]
        delay = max(1, round(min(left).total_seconds() * 1000)) if left else None
        return WorkWaitAnswer(delay_ms=delay, waits=states)

    def _look(self, wait: dict[str, Any]) -> WorkWaitState:
        name, timeout = wait["name"], wait.get("timeoutMs")
        until = self._job.now + timedelta(milliseconds=timeout) if timeout else None
        state = self._states.setdefault(name, WorkWaitState(name=name, status="OPEN", until=until))
        if state.status != "OPEN":
            return state
        if "job" in wait:
            self._call(state, wait["job"])
        elif event := next((one for one in self._job.events if one not in self._taken and _fits(one, wait["event"])), None):
            self._taken.append(event)
            state.status, number = "DONE", len(self._taken)
            data = json.loads(json.dumps(event.data))
            state.event = ReceivedEvent(id=f"test-{number}", source=event.source, type=event.type, subject=event.subject, data=data)
        elif state.until and state.until <= self._job.now:
            state.status = "TIMED_OUT"
        return state

    def _call(self, state: WorkWaitState, job: dict[str, Any]) -> None:
        state.job = state.job or WorkCalledJob(job_id=uuid.uuid4(), status="PENDING", output=None, last_error=None)
        if (call := self._job.calls.get(job["jobType"])) is None:
            return
        state.status = "DONE"
        try:
            state.job.output = json.loads(json.dumps(call(job["payload"])))
            state.job.status = "COMPLETED"
        except Exception as error:
            state.job.status = "FAILED"
            state.job.last_error = LastErrorOrNull(error_code="TEST.FAILED", message=str(error))


def _fits(event: TestEvent, asked: dict[str, Any]) -> bool:
    for name, value in (("type", event.type), ("source", event.source), ("subject", event.subject)):
        if asked.get(name) not in (None, value):
            return False
    missing = object()
    return all(_same(_member(event.data, path, missing), value) for path, value in (asked.get("match") or {}).items())


def _same(one: Any, other: Any) -> bool:
    """As JSON: 1 is 1.0, and not true."""
    return bool(isinstance(one, bool) == isinstance(other, bool) and one == other)


def _member(data: Any, path: str, missing: Any) -> Any:
    """The member of data at a path such as order.id."""
    if not isinstance(data, dict):
        return missing
    if path in data:
        return data[path]
    name, dot, rest = path.partition(".")
    return _member(data.get(name), rest, missing) if dot else missing
