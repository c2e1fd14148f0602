"""The checkpoint of an attempt, and its steps and sleeps."""

from __future__ import annotations

import asyncio
import json
import unicodedata
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from ._json import json_of
from .attempt import NotRetryable, Outcome, Snooze

MAX_BYTES = 65_536  # of a checkpoint
MAX_RESULT = 262_144  # bytes
LONGEST_SNOOZE = 30 * 86_400.0  # that the gateway accepts
MAX_NAME = 200  # characters that the gateway accepts
SHOWN_RESULT = 1_000  # characters of a result in the message of an error


@dataclass(frozen=True)
class KeptStep:
    """A step that has ended, or a sleep, as it is kept for the later attempts of its job."""

    name: str
    result: Any = None
    until: datetime | None = None
    """The end of a sleep; None: it is a step."""


@dataclass(frozen=True)
class NewStep:
    """A step to be kept. Its result is JSON already."""

    name: str
    result: str | None = None
    until: datetime | None = None
    took: float | None = None
    """The seconds that the step ran."""


class Store(Protocol):
    """Where the checkpoint and the steps of a job are kept. Its coroutines run in the worker's event loop."""

    async def save(self, number: int, checkpoint: str, /) -> None: ...

    async def save_step(self, step: NewStep, /) -> KeptStep:
        """Keeps a step, and returns it.

        If the job has a step of its name already, nothing changes, and that one is returned: two attempts may overlap, when one of
        them was taken for lost.
        """
        ...

    async def read_steps(self) -> list[KeptStep]:
        """The steps that earlier attempts have saved."""
        ...


@dataclass(frozen=True, eq=False)
class Running:
    """A step that runs, or whose result is being kept."""

    over: Future[None]
    cancel: Callable[[], object]


class Checkpoint:
    """What an attempt has saved, and its steps, which are kept one by one. Its coroutines run in the worker's event loop."""

    def __init__(
        self,
        saved: Any,
        attempt: int,
        store: Store,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.own, self._store, self._now = saved, store, now
        self._used: set[str] = set()
        self._running: set[Running] = set()
        self._closed = False  # no further step begins
        self._number = 0
        self._saving, self._reading = asyncio.Lock(), asyncio.Lock()
        self._earlier: dict[str, KeptStep] | None = {} if attempt == 1 else None  # None: not yet read

    async def save(self, value: Any) -> None:
        text = json_of(value, "checkpoint", "the checkpoint")
        size = len(text.encode())
        if size > MAX_BYTES:
            what = f"the checkpoint has {size} bytes, {MAX_BYTES} are allowed"
            raise NotRetryable(what, error_code="WORKER.CHECKPOINT_TOO_LARGE")
        async with self._saving:
            self._number += 1
            await self._store.save(self._number, text)
            self.own = json.loads(text)

    @contextmanager
    def running(self, name: str, cancel: Callable[[], object] = lambda: None) -> Iterator[None]:
        """Counts a step until its result is kept. Any thread may enter it."""
        step = Running(Future(), cancel)
        self._running.add(step)  # before it reads _closed: close() sets _closed before it lists the steps, and misses none
        try:
            if self._closed:
                raise InterruptedError(f"step {name} does not run: the handler has ended")
            yield
        finally:
            self._running.discard(step)
            step.over.set_result(None)

    def close(self) -> list[Running]:
        """Lets no further step begin, and returns those that run.

        It is called after the handler has ended, and before the attempt is settled: a handler may end while its steps run, and
        their results would be refused.
        """
        self._closed = True
        return list(self._running)

    def use(self, name: str) -> None:
        """Takes a name: no other step of the attempt may have it, and nothing else that is kept by its name.

        It refuses a name that the gateway would refuse only after the step has run.
        """
        if wrong := _name_flaw(name):
            text = f"the name of a step, sleep or wait {wrong}: {json.dumps(name[:MAX_NAME])}"
            raise NotRetryable(text, error_code="API.INVALID_JOB_REQUEST")
        if name in self._used:
            raise NotRetryable(f"the attempt has two steps of the name {name}", error_code="WORKER.STEP_REPEATED")
        self._used.add(name)

    def free(self, name: str) -> None:
        """The handler may use the name again."""
        self._used.discard(name)

    async def begin_step(self, name: str) -> KeptStep | None:
        """Begins a step, and returns what earlier attempts have kept of it."""
        known = await self._begin(name)
        return None if known is None else _step(known)

    async def remember(self, name: str, value: Any, took: float) -> Any:
        """Keeps the result of a step, and returns what is kept."""
        result = json_of(value, "result", f"the result of step {name}")
        size = len(result.encode())
        if size > MAX_RESULT:
            raise _unkept(name, result, f"{MAX_RESULT} bytes are allowed", "WORKER.OUTPUT_TOO_LARGE")
        try:
            kept = await self._store.save_step(NewStep(name, result=result, took=took))
        except Outcome as error:
            raise _unkept(name, result, str(error), error.result.get("errorCode")) from error
        return _step(kept).result

    async def sleep(self, name: str, seconds: float) -> None:
        """Raises Snooze until the time has passed."""
        known = await self._begin(name)
        now = self._now()
        if known is None:
            if seconds <= 0:
                return
            known = await self._store.save_step(NewStep(name, until=now + timedelta(seconds=seconds)))
        if known.until is None:
            raise _another_kind(name)
        left = (known.until - now).total_seconds()
        if left > 0:
            raise Snooze(min(left, LONGEST_SNOOZE))

    async def _begin(self, name: str) -> KeptStep | None:
        self.use(name)
        async with self._reading:
            if self._earlier is None:
                try:
                    self._earlier = {step.name: step for step in await self._store.read_steps()}
                except BaseException:
                    self.free(name)
                    raise
        return self._earlier.get(name)


def _name_flaw(name: str) -> str | None:
    if not name:
        return "must not be empty"
    if len(name) > MAX_NAME:
        return f"must have at most {MAX_NAME} characters"
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        return "must contain neither control characters nor surrogates"
    return None


def _step(kept: KeptStep) -> KeptStep:
    if kept.until is not None:
        raise _another_kind(kept.name)
    return kept


def _unkept(name: str, result: str, why: str, error_code: str | None) -> NotRetryable:
    what = f"step {name} has run, and its result of {len(result.encode())} bytes cannot be kept: {why}"
    return NotRetryable(f"{what}; the result begins with {result[:SHOWN_RESULT]}", error_code=error_code)


def _another_kind(name: str) -> NotRetryable:
    what = f"{name} is a step in one attempt of the job and a sleep in another: give one of them another name"
    return NotRetryable(what, error_code="WORKER.STEP_REPEATED")
