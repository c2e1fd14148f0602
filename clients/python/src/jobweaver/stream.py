"""The events of a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import httpx
from httpx_sse import ServerSentEvent

from .errors import api_error
from .models import JobSummary, Stats, StreamLog, StreamProgress, StreamReload

SILENCE = 45.0  # a gateway sends a comment every 15 s


@dataclass(frozen=True)
class JobEvent:
    """A new or changed job."""

    id: str
    data: JobSummary


@dataclass(frozen=True)
class ProgressEvent:
    """The progress of an attempt."""

    id: str
    data: StreamProgress


@dataclass(frozen=True)
class LogEvent:
    """New lines of a job's log; only of a stream of one job."""

    id: str
    data: StreamLog


@dataclass(frozen=True)
class StatsEvent:
    """The statistics of GET /api/stats."""

    id: str
    data: Stats


@dataclass(frozen=True)
class ReloadEvent:
    """Changes were missed: read again what you show."""

    id: str
    data: StreamReload


StreamEvent: TypeAlias = JobEvent | ProgressEvent | LogEvent | StatsEvent | ReloadEvent


def typed(sse: ServerSentEvent) -> StreamEvent | None:
    """Returns an event of the stream; None if this version does not know its name."""
    match sse.event:
        case "job":
            return JobEvent(sse.id, JobSummary.model_validate_json(sse.data))
        case "progress":
            return ProgressEvent(sse.id, StreamProgress.model_validate_json(sse.data))
        case "log":
            return LogEvent(sse.id, StreamLog.model_validate_json(sse.data))
        case "stats":
            return StatsEvent(sse.id, Stats.model_validate_json(sse.data))
        case "reload":
            return ReloadEvent(sse.id, StreamReload.model_validate_json(sse.data))
    return None


def is_stream(response: httpx.Response) -> bool:
    kind = response.headers.get("Content-Type", "").split(";")[0]
    return response.status_code == 200 and kind == "text/event-stream"


def refusal(response: httpx.Response) -> Exception:
    """Returns why a response, whose body has been read, is not a stream."""
    return api_error(response)
