"""The checkpoint of an attempt, and the steps and sleeps that it remembers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from ._json import json_of
from .attempt import NotRetryable, Snooze

MAX_BYTES = 65_536
LONGEST_SNOOZE = 30 * 86_400.0  # that the gateway accepts
SHOWN_RESULT = 1_000  # characters of a result in the message of an error


class Checkpoint:
    """What an attempt has saved: the handler's own part, and its steps.

    With steps it is stored as {"$steps": {name: {"result"} or {"wakeAt"}}, "$data": own part}, in all languages. Its coroutines
    run in the worker's event loop.
    """

    def __init__(
        self,
        saved: Any,
        store: Callable[[int, str], Awaitable[None]],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.own, self._store, self._now = saved, store, now
        self._steps: dict[str, Any] = {}
        if _has_steps(saved):
            self.own, self._steps = saved.get("$data"), saved["$steps"]
        self._used: set[str] = set()
        self._number = 0
        self._saving = asyncio.Lock()

    async def save(self, value: Any) -> None:
        await self._change(through_json(value, "checkpoint", "the checkpoint"), None, "the checkpoint is not saved")

    def begin(self, name: str) -> dict[str, Any] | None:
        """Begins a step, and returns what is remembered of it."""
        if name in self._used:
            raise NotRetryable(f"the attempt has two steps of the name {name}", error_code="WORKER.STEP_REPEATED")
        self._used.add(name)
        known: dict[str, Any] | None = self._steps.get(name)
        return known

    def begin_step(self, name: str) -> dict[str, Any] | None:
        known = self.begin(name)
        if known is not None and "result" in known:
            return known
        size = _size(_whole(self.own, self._steps | {name: {"result": None}}))
        if size > MAX_BYTES:
            raise _too_large(f"step {name} does not run", size)
        return None

    def failed(self, name: str) -> None:
        """The handler may try the step again."""
        self._used.discard(name)

    async def remember(self, name: str, value: Any) -> Any:
        result = through_json(value, "result", f"the result of step {name}")
        text = _text(result)
        what = f"step {name} has run, and its result of {len(text)} characters cannot be remembered"
        await self._change(None, {name: {"result": result}}, f"{what}; it begins with {text[:SHOWN_RESULT]}")
        return result

    async def sleep(self, name: str, seconds: float) -> None:
        """Raises Snooze until the time has passed."""
        known = self.begin(name)
        now = self._now()
        wake_at = now + timedelta(seconds=seconds)
        if known is not None and "wakeAt" in known:
            wake_at = datetime.fromisoformat(known["wakeAt"])
        left = (wake_at - now).total_seconds()
        if left <= 0:
            return
        # Also a known one is saved: a checkpoint is kept for a time after its last save.
        text = wake_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        await self._change(None, {name: {"wakeAt": text}}, f"sleep {name} is not saved")
        raise Snooze(min(left, LONGEST_SNOOZE))

    async def _change(self, own: Any, step: dict[str, Any] | None, what: str) -> None:
        """Stores another own part, or another step. After an error the checkpoint is as before."""
        async with self._saving:
            own, steps = (own, self._steps) if step is None else (self.own, self._steps | step)
            whole = _text(_whole(own, steps))
            size = len(whole.encode())
            if size > MAX_BYTES:
                raise _too_large(what, size)
            self._number += 1
            await self._store(self._number, whole)
            self.own, self._steps = own, steps


def _has_steps(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("$steps"), dict)


def _whole(own: Any, steps: dict[str, Any]) -> Any:
    if not steps and not _has_steps(own):
        return own
    return {"$steps": steps} | ({} if own is None else {"$data": own})


def through_json(value: Any, name: str, what: str) -> Any:
    """A value as it comes back from a checkpoint, so that an attempt does not get what the next one does not."""
    return json.loads(json_of(value, name, what))


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _size(value: Any) -> int:
    return len(_text(value).encode())


def _too_large(what: str, size: int) -> NotRetryable:
    text = f"{what}: the checkpoint has {size} bytes, {MAX_BYTES} are allowed"
    return NotRetryable(text, error_code="WORKER.CHECKPOINT_TOO_LARGE")
