"""The attempts that handlers of a pull worker get, and the exceptions that they raise."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias
from uuid import UUID

from .errors import JobWeaverError
from .models import Callback

Level: TypeAlias = Literal["debug", "info", "warn", "error"]
AbortReason: TypeAlias = Literal["cancelled", "lost", "deadline", "stop"]

LINES_KEPT = 1_000  # of one attempt, while heartbeats fail


@dataclass(eq=False)
class Attempt:
    """An attempt that a handler runs. job_id and number together fence its side effects: no other attempt has both.

    `cancelled` is set when the attempt should end; `reason` then has the cause. The task of an asyncio handler is also cancelled.
    """

    job_id: UUID
    number: int
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
    cancelled: threading.Event = field(default_factory=threading.Event)
    reason: AbortReason | None = None
    _progress: dict[str, Any] | None = None
    _lines: list[dict[str, str]] = field(default_factory=list)  # not yet sent in a heartbeat
    _closed: bool = False

    def progress(self, percent: float, message: str | None = None) -> None:
        """Reports the progress of the attempt, from 0 to 100."""
        if not self._closed:
            self._progress = {"percent": round(min(100, max(0, percent))), "message": message and clean(message, 1000)}

    def log(self, text: str, level: Level = "info") -> None:
        """Adds a line to the job's log."""
        if not self._closed and len(self._lines) < LINES_KEPT:
            self._lines.append({"level": level, "text": clean(text, 16_384)})


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
