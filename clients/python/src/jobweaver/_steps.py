"""The logic of the clients, without input and output: generators that yield requests and pauses.

Client and AsyncClient differ only in how they send a request and how they pause, so all decisions (which request is repeated,
when, and for how long) are made here.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ConfigDict, Field

from . import models
from .errors import (
    ApiError,
    GatewayUnreachable,
    JobEnded,
    JobWeaverError,
    RateLimited,
    Unavailable,
    api_error,
    empty_policies,
    retry_after,
)

VERSION = "0.1.0"
"""The version of the API that this client was made for, and of this package."""

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
PATIENCE = 30.0  # seconds in total that a call waits for rate limits
MAX_LIMITED = 10  # tries that a rate limit may refuse
AWAY_AT_MOST = 120.0  # seconds that a call waits for a gateway that restarts
HOLD = "30s"  # the wait of one request; the API allows 60 s
BATCH = 1000  # jobs in one request

M = TypeVar("M", bound=BaseModel)
Page = TypeVar(
    "Page",
    models.JobPage,
    models.BatchPage,
    models.FlowPage,
    models.SchedulePage,
    models.TickPage,
    models.SharePage,
    models.OperationPage,
    models.DeliveryPage,
    models.RejectedPage,
    models.KeyPage,
    models.AuditPage,
    models.AlertPage,
    models.NoticePage,
)
Params: TypeAlias = tuple[tuple[str, str], ...]
T = TypeVar("T")


class JobRequest(models.JobRequest):
    """A request for a job. Only job_type and payload are required; the installation has defaults for the rest.

    The payload is any JSON value, or a model, such as those of `jobweaver-types`.
    """

    model_config = ConfigDict(extra="forbid")


class JobChange(models.JobChange):
    """The members that can be changed before a job has started; None restores the default."""

    model_config = ConfigDict(extra="forbid")


class RunAgainRequest(models.RunAgainRequest):
    """Changes to the request of a job that runs again."""

    model_config = ConfigDict(extra="forbid")


class BatchRequest(models.BatchRequest):
    """A request for a batch, with its first jobs."""

    model_config = ConfigDict(extra="forbid")

    jobs: list[JobRequest] | None = None  # type: ignore[assignment]
    on_complete: Annotated[JobRequest | None, Field(alias="onComplete")] = None  # type: ignore[assignment]
    on_failure: Annotated[JobRequest | None, Field(alias="onFailure")] = None  # type: ignore[assignment]


class FlowJobRequest(models.FlowJobRequest):
    """A request for a job of a flow. Its payload may refer to the output of another job: `{"$output": "name"}`."""

    model_config = ConfigDict(extra="forbid")


class FlowRequest(models.FlowRequest):
    """A request for a flow: jobs that name each other in `after`."""

    model_config = ConfigDict(extra="forbid")

    jobs: dict[str, FlowJobRequest]  # type: ignore[assignment]
    on_complete: Annotated[JobRequest | None, Field(alias="onComplete")] = None  # type: ignore[assignment]
    on_failure: Annotated[JobRequest | None, Field(alias="onFailure")] = None  # type: ignore[assignment]


class AlertRequest(models.AlertRequest):
    """A rule about failed jobs, and where its notices go."""

    model_config = ConfigDict(extra="forbid")


class ScheduleRequest(models.ScheduleRequest):
    """A cron expression with a request for a job."""

    model_config = ConfigDict(extra="forbid")

    job: JobRequest  # type: ignore[assignment]


@dataclass(frozen=True)
class Send:
    """A request to send. The caller sends back an httpx.Response that has been read, or throws an httpx.TransportError."""

    method: str
    path: str
    params: Params = ()
    json: Any = None
    content: str | None = None  # in place of json: the body, which is JSON already
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    repeatable: bool = False  # sending it twice does no harm
    submits: bool = False


@dataclass(frozen=True)
class Sleep:
    """A pause of so many seconds."""

    seconds: float


Steps: TypeAlias = Generator[Send | Sleep, Any, T]


def backoff(failed: int) -> float:
    """A pause that doubles with each failure. Half of it is random, so that clients that failed together do not retry together."""
    most: float = min(FIRST_PAUSE * 2 ** min(failed, 10), LONGEST_PAUSE)
    return most / 2 + random.uniform(0, most / 2)


def is_unreached(error: BaseException) -> bool:
    """Whether the gateway could not be reached, or is not available at the moment."""
    return isinstance(error, GatewayUnreachable | Unavailable)


def path(*parts: uuid.UUID | str) -> str:
    return "/".join(["/api", *(quote(str(part), safe="") for part in parts)])


def job_path(job_id: uuid.UUID | str, *more: str) -> str:
    return path("jobs", job_id, *more)


def dump(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


def with_key(request: BaseModel) -> dict[str, Any]:
    """Returns a request with its idempotency key, or with a new one. A job id of the client is also the key."""
    body = dump(request)
    if not body.get("idempotencyKey") and not body.get("jobId"):
        body["idempotencyKey"] = str(uuid.uuid4())
    return body


def query(values: dict[str, Any]) -> Params:
    pairs = []
    for name, value in values.items():
        for one in value if isinstance(value, list | tuple) else [value]:
            if one is not None:
                text = one.isoformat() if isinstance(one, datetime) else str(one).lower() if isinstance(one, bool) else str(one)
                pairs.append((name, text))
    return tuple(pairs)


class Filter(BaseModel):
    """Selects jobs: a job must match all members."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    status: Sequence[str] | None = None
    type: str | None = None
    queue: str | None = None
    tag: str | None = None
    batch_id: uuid.UUID | str | None = None
    fan_out_id: uuid.UUID | str | None = None
    ordering_key: str | None = None
    error_code: str | None = None
    no_error_code: Literal[True] | None = None
    payload: str | None = None  # a path in the payload, a colon and the value there: order.id:17
    after: uuid.UUID | str | None = None
    trace_id: str | None = None
    idempotency_key: str | None = None
    event_source: str | None = None
    event_id: str | None = None
    search: str | None = None
    owner_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    ended_since: datetime | None = None
    ended_until: datetime | None = None

    def query(self) -> Params:
        return query(self._members())

    def body(self) -> dict[str, Any]:
        """Returns the filter as the body of an operation has it."""
        return {
            name: value if isinstance(value, bool) else [*value] if name == "status" else query({name: value})[0][1]
            for name, value in self._members().items()
            if value is not None
        }

    def _members(self) -> dict[str, Any]:
        names = {
            "batch_id": "batchId",
            "fan_out_id": "fanOutId",
            "ordering_key": "orderingKey",
            "error_code": "errorCode",
            "no_error_code": "noErrorCode",
            "trace_id": "traceId",
            "idempotency_key": "idempotencyKey",
            "event_source": "eventSource",
            "event_id": "eventId",
            "search": "q",
            "owner_id": "ownerId",
            "ended_since": "endedSince",
            "ended_until": "endedUntil",
        }
        return {names.get(name, name): value for name, value in self}


class Plan:
    """The logic and the state of one client."""

    def __init__(self, retries: int) -> None:
        self._retries = retries
        self._next: dict[str, float] = {}  # by policy of RateLimit, when requests are allowed again

    def call(self, send: Send) -> Steps[httpx.Response]:
        """Sends a request, and repeats it if the repetition cannot have a second effect.

        That is a read, a request with an idempotency key, one for which no connection was made, and one that was refused without
        any effect (408, 429).
        """
        end, limited, failed = time.monotonic() + PATIENCE, 0, 0
        while True:
            yield from self._pace(send, end)
            answer: httpx.Response | httpx.TransportError
            try:
                answer = yield send
            except httpx.TransportError as error:
                answer = error
            if isinstance(answer, httpx.Response):
                now = time.monotonic()
                self._next.update({policy: now + left for policy, left in empty_policies(answer.headers).items()})
            if isinstance(answer, httpx.Response) and answer.status_code == 429:
                after = retry_after(answer.headers)
                limited += 1
                if after is None or limited == MAX_LIMITED or time.monotonic() + after > end:
                    return given(answer)
                yield Sleep(after * random.uniform(1, 1.1))
            elif may_repeat(send, answer) and failed < self._retries:
                asked = retry_after(answer.headers) if isinstance(answer, httpx.Response) else None
                pause = max(backoff(failed), asked or 0)
                failed += 1
                if pause > PATIENCE:
                    return given(answer)
                yield Sleep(pause)
            else:
                return given(answer)

    def _pace(self, send: Send, end: float) -> Steps[None]:
        """Waits until the rate limits of earlier responses allow the request. If that would take too long, it is sent at once."""
        now = time.monotonic()
        at = max((t for policy, t in self._next.items() if policy != "jobs" or send.submits), default=now)
        if now < at < end:
            yield Sleep(at - now)

    def model(self, kind: type[M], send: Send) -> Steps[M]:
        answer = yield from self.call(send)
        return kind.model_validate_json(answer.content)

    def submit(self, job: JobRequest) -> Steps[models.Accepted]:
        send = Send("POST", "/api/jobs", json=with_key(job), repeatable=True, submits=True)
        return (yield from self.model(models.Accepted, send))

    def submit_batch(self, jobs: Iterable[JobRequest]) -> Steps[list[models.BatchAccepted | models.BatchRefused]]:
        bodies = [with_key(job) for job in jobs]
        results: list[models.BatchAccepted | models.BatchRefused] = []
        for begin in range(0, len(bodies), BATCH):
            part = {"jobs": bodies[begin : begin + BATCH]}
            send = Send("POST", "/api/jobs/batch", json=part, repeatable=True, submits=True)
            results += (yield from self.model(models.BatchResults, send)).results
        return results

    def get(self, job_id: uuid.UUID | str) -> Steps[models.Job]:
        return (yield from self.model(models.Job, Send("GET", job_path(job_id))))

    def wait(self, job_id: uuid.UUID | str, timeout: float | None) -> Steps[models.Job]:
        return (yield from self.until(models.Job, job_path(job_id), has_ended, timeout))

    def until(self, kind: type[M], path: str, ended: Callable[[M], bool], timeout: float | None) -> Steps[M]:
        """Reads until something has ended. Each request is held until then, or for a while."""
        end = None if timeout is None else time.monotonic() + timeout
        alive, failed = time.monotonic(), 0
        while True:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError(f"{path} has not ended in {timeout} s")
            try:
                hold = HOLD if left is None or left > 30 else f"{max(int(left * 1000), 1)}ms"
                now = yield from self.model(kind, Send("GET", path, query({"wait": hold})))
            except JobWeaverError as error:
                if not is_unreached(error) or time.monotonic() - alive > AWAY_AT_MOST:
                    raise
                failed += 1
            else:
                if ended(now):
                    return now
                alive, failed = time.monotonic(), 0
            yield Sleep(min(backoff(failed), left or LONGEST_PAUSE))  # a busy gateway answers without waiting

    def run(self, job: JobRequest, timeout: float | None) -> Steps[models.Job]:
        accepted = yield from self.submit(job)
        ended = yield from self.wait(accepted.job_id, timeout)
        if ended.status != "COMPLETED":
            raise JobEnded(ended)
        return ended

    def page(self, kind: type[Page], path: str, params: Params, cursor: str | None) -> Steps[Page]:
        return (yield from self.model(kind, Send("GET", path, params + query({"limit": 200, "cursor": cursor}))))

    def callback(self, secret: str, body: dict[str, Any]) -> Steps[None]:
        sent = {name: value for name, value in body.items() if value is not None}
        send = Send("POST", "/api/jobs/callback", json=sent, headers={"X-Callback-Secret": secret}, repeatable=True)
        yield from self.call(send)

    def send_event(self, event: dict[str, Any]) -> Steps[models.EventKept]:
        body = {"specversion": "1.0", "datacontenttype": "application/json"} | {k: v for k, v in event.items() if v is not None}
        send = Send("POST", "/events", json=body, content_type="application/cloudevents+json", repeatable=True)
        return (yield from self.model(models.EventKept, send))

    def command(self, job_id: uuid.UUID | str, command: str, body: Any = None) -> Steps[None]:
        """A command whose response was lost is not repeated: the state of the job may no longer allow it."""
        yield from self.call(Send("POST", job_path(job_id, command), json=body))

    def change(self, job_id: uuid.UUID | str, change: JobChange) -> Steps[None]:
        send = Send("PATCH", job_path(job_id), json=dump(change), content_type="application/merge-patch+json")
        yield from self.call(send)

    def delete(self, job_id: uuid.UUID | str) -> Steps[None]:
        yield from self.call(Send("DELETE", job_path(job_id)))

    def run_again(self, job_id: uuid.UUID | str, changes: RunAgainRequest | None) -> Steps[models.Accepted]:
        body = with_key(changes or RunAgainRequest())
        send = Send("POST", job_path(job_id, "run-again"), json=body, repeatable=True, submits=True)
        return (yield from self.model(models.Accepted, send))

    def logs(self, job_id: uuid.UUID | str, attempt: int | None, cursor: str | None) -> Steps[models.LogPage]:
        send = Send("GET", job_path(job_id, "logs"), query({"attempt": attempt, "cursor": cursor}))
        return (yield from self.model(models.LogPage, send))


def is_finished(now: models.BatchFields | models.FlowFields | models.OperationFields) -> bool:
    return now.finished_at is not None


def has_ended(job: models.JobFields) -> bool:
    """Whether a job is COMPLETED, FAILED or CANCELLED."""
    return job.status in ("COMPLETED", "FAILED", "CANCELLED")


def given(answer: httpx.Response | httpx.TransportError) -> httpx.Response:
    if isinstance(answer, httpx.TransportError):
        raise GatewayUnreachable(str(answer) or type(answer).__name__) from answer
    if not answer.is_success:
        raise api_error(answer)
    return answer


def may_repeat(send: Send, answer: httpx.Response | httpx.TransportError) -> bool:
    if isinstance(answer, httpx.Response):
        if answer.status_code == 408:
            return True  # the gateway has not read the whole request
        if answer.status_code not in (502, 503, 504):
            return False
    return send.repeatable or send.method in ("GET", "HEAD", "PUT") or isinstance(answer, httpx.ConnectError | httpx.ConnectTimeout)


class StreamPlace:
    """The place at which a stream resumes, and how long it is retried."""

    def __init__(self) -> None:
        self.last: str | None = None
        self._alive, self._failed = time.monotonic(), 0

    def headers(self) -> dict[str, str]:
        headers = {"Accept": "text/event-stream, application/problem+json", "Cache-Control": "no-store"}
        return headers | ({"Last-Event-ID": self.last} if self.last else {})

    def seen(self, event_id: str) -> None:
        self.last = event_id or self.last
        self._alive, self._failed = time.monotonic(), 0

    def pause(self, error: Exception | None) -> float:
        """Returns how long to wait before the stream is opened again, or raises the error."""
        refused = isinstance(error, ApiError) and not isinstance(error, Unavailable | RateLimited)
        if error and (refused or time.monotonic() - self._alive > AWAY_AT_MOST):
            if isinstance(error, httpx.TransportError):
                raise GatewayUnreachable(str(error) or type(error).__name__) from error
            raise error
        pause = backoff(self._failed)
        self._failed += 1
        return max(pause, (isinstance(error, ApiError) and error.retry_after) or 0)
