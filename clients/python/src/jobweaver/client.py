"""The clients: Client, and AsyncClient for asyncio, with the same methods."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, cast

import httpx
from httpx_sse import EventSource

from . import async_parts, models, parts
from ._steps import (
    VERSION,
    Filter,
    JobChange,
    JobRequest,
    M,
    Page,
    Params,
    Plan,
    RunAgainRequest,
    Send,
    Sleep,
    Steps,
    StreamPlace,
    dump,
    query,
)
from .errors import ClientClosed, JobWeaverError
from .flow import AsyncFlowBuilder, FlowBuilder
from .stream import SILENCE, StreamEvent, is_stream, refusal, typed
from .task import (
    AsyncBatchTaskDecorator,
    AsyncTask,
    AsyncTaskDecorator,
    BatchTaskDecorator,
    Task,
    TaskDecorator,
    batch_decorator,
    decorator,
)

T = TypeVar("T")
Status = Literal["COMPLETED", "FAILED", "PROGRESS"]
Id = uuid.UUID | str


def _headers(api_key: str | None) -> dict[str, str]:
    headers = {
        "Accept": "application/json, application/problem+json, */*;q=0.1",
        "User-Agent": f"jobweaver-python/{VERSION}",
    }
    return headers | ({"Authorization": f"Bearer {api_key}"} if api_key else {})


def _place(url: str | None, api_key: str | None) -> tuple[str, str | None]:
    """Returns the address and the key of a client; what is not given, the environment has. An empty setting is none."""
    return url or os.environ.get("JOBWEAVER_URL") or "http://localhost:8080", api_key or os.environ.get("JOBWEAVER_API_KEY") or None


def _request(http: httpx.Client | httpx.AsyncClient, send: Send) -> httpx.Request:
    headers = {"Content-Type": send.content_type} if send.json is not None or send.content is not None else {}
    params = send.params or None
    headers |= send.headers
    return http.build_request(send.method, send.path, params=params, json=send.json, content=send.content, headers=headers)


def _stream_params(job_id: Id | None, which: Filter | None) -> tuple[tuple[str, str], ...]:
    if job_id is not None and which is not None:
        raise ValueError("a stream is of one job, or of a filter")
    return query({"jobId": job_id}) if job_id is not None else (which or Filter()).query()


class Client:
    """A client of one gateway. Threads may share it.

    url is the address of the gateway, by default JOBWEAVER_URL or http://localhost:8080; api_key is an API key or a token of the
    installation's issuer, by default JOBWEAVER_API_KEY.
    timeout, in seconds, limits the connection and each pause of a response. A request that may be repeated is repeated at most
    `retries` times; after a 429 more often, for 30 s. transport replaces that of httpx, for example one with certificates.

    close() ends pauses at once; a request under way in another thread ends with its response or its timeout.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 120.0,
        retries: int = 4,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        url, api_key = _place(url, api_key)
        self._http = httpx.Client(
            base_url=url.rstrip("/"),
            headers=_headers(api_key),
            timeout=timeout,
            transport=transport,
            follow_redirects=False,
        )
        self._plan = Plan(retries)
        self._closed = threading.Event()
        self.batches = parts.Batches(self)
        self.flows = parts.Flows(self)
        self.schedules = parts.Schedules(self)
        self.alerts = parts.Alerts(self)
        self.queues = parts.Queues(self)
        self.controls = parts.Controls(self)
        self.operations = parts.Operations(self)
        self.dead = parts.Dead(self)
        self.deliveries = parts.Deliveries(self)
        self.rejected = parts.Rejected(self)
        self.job_types = parts.JobTypes(self)
        self.workers = parts.Workers(self)
        self.hooks = parts.Hooks(self)
        self.keys = parts.Keys(self)
        self.audit = parts.Audit(self)
        self.installation = parts.Installation(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends all pauses, and makes every later request fail."""
        self._closed.set()
        self._http.close()

    def _sleep(self, seconds: float) -> None:
        if self._closed.wait(seconds):
            raise ClientClosed("the client was closed")

    def _run(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    answer = self._do(step)
                except httpx.TransportError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    def _do(self, step: Send | Sleep) -> httpx.Response | None:
        if isinstance(step, Sleep):
            self._sleep(step.seconds)
            return None
        if self._closed.is_set():
            raise ClientClosed("the client was closed")
        return self._http.send(_request(self._http, step))

    def _call(self, send: Send) -> None:
        self._run(self._plan.call(send))

    def _model(self, kind: type[M], send: Send) -> M:
        return self._run(self._plan.model(kind, send))

    def _wait(self, kind: type[M], path: str, ended: Callable[[M], bool], timeout: float | None) -> M:
        return self._run(self._plan.until(kind, path, ended, timeout))

    def _pages(self, kind: type[Page], path: str, params: Params) -> Iterator[Page]:
        cursor: str | None = None
        while True:
            page = self._run(self._plan.page(kind, path, params, cursor))
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return

    def request(self, method: str, path: str, *, params: Any = None, json: Any = None, repeatable: bool = False) -> httpx.Response:
        """Sends a request for which there is no method. A POST, PATCH or DELETE is repeated only if it is
        repeatable, or if it had no effect."""
        send = Send(method, path, query(params or {}), json, repeatable=repeatable)
        return self._run(self._plan.call(send))

    def flow(self, **about: Any) -> FlowBuilder:
        """Begins a flow that is written as code. about has the members of a FlowRequest besides its jobs."""
        return FlowBuilder(self, **about)

    def task(self, job_type: str, **options: Any) -> TaskDecorator:
        """Decorates a function to define a job type in code; see Task for the options.

        A Worker with an AsyncClient runs it: tasks know their types, not their client.
        """
        return cast(TaskDecorator, decorator(Task, self, job_type, options))

    def batch_task(self, job_type: str, *, max_batch: int = 100, max_wait: float = 0.1, **options: Any) -> BatchTaskDecorator:
        """Decorates a function that takes a list of payloads, up to `max_batch`, and returns a list of outputs.

        An API for embeddings or a bulk insert is quicker so. The first job waits up to `max_wait` seconds for others. An exception
        in place of an output fails that job alone: each is settled, retried and cancelled by itself. What the function raises
        fails all of them. Each job takes a slot of its worker.
        """
        return cast(BatchTaskDecorator, batch_decorator(Task, self, job_type, max_batch, max_wait, options))

    def submit(self, job: JobRequest) -> models.Accepted:
        """Submits a job. If it has no idempotency_key it gets one, so that a repeated request makes no second job."""
        return self._run(self._plan.submit(job))

    def run(self, job: JobRequest, *, timeout: float | None = None) -> models.Job:
        """Submits a job and returns it once it is COMPLETED. Raises JobEnded if it ends otherwise."""
        return self._run(self._plan.run(job, timeout))

    def submit_batch(self, jobs: Iterable[JobRequest]) -> list[models.BatchAccepted | models.BatchRefused]:
        """Submits any number of jobs, 1,000 in a request, and returns a result for each, in their order.

        A refused job does not stop the others. Each job without an idempotency_key gets one.
        """
        return self._run(self._plan.submit_batch(jobs))

    def get(self, job_id: Id) -> models.Job:
        return self._run(self._plan.get(job_id))

    def wait(self, job_id: Id, *, timeout: float | None = None) -> models.Job:
        """Returns a job once it has ended, in any terminal state. Raises TimeoutError if it takes longer.

        It survives a restart of the gateway.
        """
        return self._run(self._plan.wait(job_id, timeout))

    def list(self, which: Filter | None = None) -> Iterator[models.JobSummary]:
        """Yields the jobs that match a filter, newest first, page by page."""
        for page in self._pages(models.JobPage, "/api/jobs", (which or Filter()).query()):
            yield from page.jobs

    def cancel(self, job_id: Id) -> None:
        """Cancels a job. If it ends before the command reaches it, it keeps that state."""
        self._run(self._plan.command(job_id, "cancel"))

    def retry(self, job_id: Id) -> None:
        """Runs a FAILED or CANCELLED job again."""
        self._run(self._plan.command(job_id, "retry"))

    def reschedule(self, job_id: Id, at: datetime) -> None:
        """Moves a waiting job to another instant, which must have a time zone."""
        self._run(self._plan.command(job_id, "reschedule", {"runAt": at.isoformat()}))

    def change(self, job_id: Id, change: JobChange) -> None:
        """Changes a job that has not started."""
        self._run(self._plan.change(job_id, change))

    def run_again(self, job_id: Id, changes: RunAgainRequest | None = None) -> models.Accepted:
        """Submits a new job with the request of this one, and changes."""
        return self._run(self._plan.run_again(job_id, changes))

    def delete(self, job_id: Id) -> None:
        """Deletes a job that has ended."""
        self._run(self._plan.delete(job_id))

    def logs(self, job_id: Id, *, attempt: int | None = None, cursor: str | None = None) -> models.LogPage:
        """Returns the last lines of a job's log, oldest first; with the cursor of a page, older lines."""
        return self._run(self._plan.logs(job_id, attempt, cursor))

    def send_event(
        self, source: str, event_type: str, data: Any = None, *, event_id: str | None = None, subject: str | None = None
    ) -> models.EventKept:
        """Sends a CloudEvent to the handlers that wait for it, now or for as long as the installation keeps it.

        Events with the same source and id count once; without an id it gets a new one.
        """
        event = {"source": source, "type": event_type, "data": data, "id": event_id or str(uuid.uuid4()), "subject": subject}
        return self._run(self._plan.send_event(event))

    def callback(
        self,
        secret: str,
        job_id: Id,
        attempt: int,
        status: Status,
        *,
        output: Any = None,
        error_code: str | None = None,
        message: str | None = None,
        retryable: bool | None = None,
        progress: models.CallbackPercent | None = None,
    ) -> None:
        """Reports the end or the progress of a WAITING attempt, with the secret that its handler passed on."""
        body = {"jobId": str(job_id), "attempt": attempt, "status": status, "output": output, "errorCode": error_code}
        more = {"message": message, "retryable": retryable, "progress": progress and dump(progress)}
        self._run(self._plan.callback(secret, body | more))

    def stream(self, job_id: Id | None = None, which: Filter | None = None) -> Iterator[StreamEvent]:
        """Follows one job with its progress and log, or the jobs of a filter, as they change.

        A broken stream is resumed after its last event. It ends when the loop ends, the client is closed or the gateway refuses
        it.
        """
        params, place = _stream_params(job_id, which), StreamPlace()
        while True:
            failure: Exception | None = None
            try:
                yield from self._connection(params, place)
            except (httpx.TransportError, httpx.StreamError, JobWeaverError) as error:
                failure = error
            if self._closed.is_set():
                raise ClientClosed("the client was closed")
            self._sleep(place.pause(failure))

    def _connection(self, params: tuple[tuple[str, str], ...], place: StreamPlace) -> Iterator[StreamEvent]:
        with self._http.stream("GET", "/api/stream", params=params, headers=place.headers(), timeout=SILENCE) as response:
            if not is_stream(response):
                response.read()
                raise refusal(response)
            for sse in EventSource(response).iter_sse():
                place.seen(sse.id)
                if event := typed(sse):
                    yield event


class _Elsewhere(httpx.AsyncBaseTransport):
    """A transport in the event loop of another thread."""

    def __init__(self, transport: httpx.AsyncBaseTransport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._there(request), self._loop))

    async def _there(self, request: httpx.Request) -> httpx.Response:
        answer = await self._transport.handle_async_request(request)
        assert isinstance(answer.stream, httpx.AsyncByteStream)
        body = b"".join([part async for part in answer.stream])
        await answer.aclose()
        return httpx.Response(answer.status_code, headers=answer.headers, stream=httpx.ByteStream(body))


class AsyncClient:
    """Client for asyncio, with the same options and methods. A cancelled task ends at once."""

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 120.0,
        retries: int = 4,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        url, api_key = _place(url, api_key)
        self.timeout = timeout
        self._url, self._api_key, self._retries, self._transport = url, api_key, retries, transport
        self._others: list[tuple[asyncio.AbstractEventLoop, AsyncClient]] = []
        self._http = httpx.AsyncClient(
            base_url=url.rstrip("/"),
            headers=_headers(api_key),
            timeout=timeout,
            transport=transport,
            follow_redirects=False,
        )
        self._plan = Plan(retries)
        self._closed = asyncio.Event()
        self.batches = async_parts.AsyncBatches(self)
        self.flows = async_parts.AsyncFlows(self)
        self.schedules = async_parts.AsyncSchedules(self)
        self.alerts = async_parts.AsyncAlerts(self)
        self.queues = async_parts.AsyncQueues(self)
        self.controls = async_parts.AsyncControls(self)
        self.operations = async_parts.AsyncOperations(self)
        self.dead = async_parts.AsyncDead(self)
        self.deliveries = async_parts.AsyncDeliveries(self)
        self.rejected = async_parts.AsyncRejected(self)
        self.job_types = async_parts.AsyncJobTypes(self)
        self.workers = async_parts.AsyncWorkers(self)
        self.hooks = async_parts.AsyncHooks(self)
        self.keys = async_parts.AsyncKeys(self)
        self.audit = async_parts.AsyncAudit(self)
        self.installation = async_parts.AsyncInstallation(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends all pauses, and makes every later request fail."""
        self._closed.set()
        for loop, other in self._others:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(lambda other=other: asyncio.ensure_future(other.aclose()))  # type: ignore[misc]
        await self._http.aclose()

    def _in_another_loop(self, loop: asyncio.AbstractEventLoop) -> AsyncClient:
        """Returns a client like this one for another event loop, which is closed with this one.

        A transport that was given to this client keeps its event loop, the running one.
        """
        here = self._transport and _Elsewhere(self._transport, asyncio.get_running_loop())
        other = AsyncClient(self._url, self._api_key, timeout=self.timeout, retries=self._retries, transport=here)
        self._others.append((loop, other))
        return other

    async def _sleep(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._closed.wait(), seconds)
        except TimeoutError:
            return
        raise ClientClosed("the client was closed")

    async def _run(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    answer = await self._do(step)
                except httpx.TransportError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    async def _do(self, step: Send | Sleep) -> httpx.Response | None:
        if isinstance(step, Sleep):
            await self._sleep(step.seconds)
            return None
        if self._closed.is_set():
            raise ClientClosed("the client was closed")
        return await self._http.send(_request(self._http, step))

    async def _call(self, send: Send) -> None:
        await self._run(self._plan.call(send))

    async def _model(self, kind: type[M], send: Send) -> M:
        return await self._run(self._plan.model(kind, send))

    async def _wait(self, kind: type[M], path: str, ended: Callable[[M], bool], timeout: float | None) -> M:
        return await self._run(self._plan.until(kind, path, ended, timeout))

    async def _pages(self, kind: type[Page], path: str, params: Params) -> AsyncIterator[Page]:
        cursor: str | None = None
        while True:
            page = await self._run(self._plan.page(kind, path, params, cursor))
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return

    async def request(
        self, method: str, path: str, *, params: Any = None, json: Any = None, content: str | None = None, repeatable: bool = False
    ) -> httpx.Response:
        """Sends a request for which there is no method, with a value as JSON, or with content that is JSON.

        A POST, PATCH or DELETE is repeated only if it is repeatable, or if it had no effect."""
        send = Send(method, path, query(params or {}), json, content, repeatable=repeatable)
        return await self._run(self._plan.call(send))

    def flow(self, **about: Any) -> AsyncFlowBuilder:
        """Begins a flow that is written as code. about has the members of a FlowRequest besides its jobs."""
        return AsyncFlowBuilder(self, **about)

    def task(self, job_type: str, **options: Any) -> AsyncTaskDecorator:
        """Decorates a function to define a job type in code; see AsyncTask for the options."""
        return cast(AsyncTaskDecorator, decorator(AsyncTask, self, job_type, options))

    def batch_task(self, job_type: str, *, max_batch: int = 100, max_wait: float = 0.1, **options: Any) -> AsyncBatchTaskDecorator:
        """Decorates a function that takes a list of payloads and returns a list of outputs; see Client.batch_task."""
        return cast(AsyncBatchTaskDecorator, batch_decorator(AsyncTask, self, job_type, max_batch, max_wait, options))

    async def submit(self, job: JobRequest) -> models.Accepted:
        """Submits a job. If it has no idempotency_key it gets one, so that a repeated request makes no second job."""
        return await self._run(self._plan.submit(job))

    async def run(self, job: JobRequest, *, timeout: float | None = None) -> models.Job:
        """Submits a job and returns it once it is COMPLETED. Raises JobEnded if it ends otherwise."""
        return await self._run(self._plan.run(job, timeout))

    async def submit_batch(self, jobs: Iterable[JobRequest]) -> Sequence[models.BatchAccepted | models.BatchRefused]:
        """Submits any number of jobs, 1,000 in a request, and returns a result for each, in their order.

        A refused job does not stop the others. Each job without an idempotency_key gets one.
        """
        return await self._run(self._plan.submit_batch(jobs))

    async def get(self, job_id: Id) -> models.Job:
        return await self._run(self._plan.get(job_id))

    async def wait(self, job_id: Id, *, timeout: float | None = None) -> models.Job:
        """Returns a job once it has ended, in any terminal state. Raises TimeoutError if it takes longer.

        It survives a restart of the gateway.
        """
        return await self._run(self._plan.wait(job_id, timeout))

    async def list(self, which: Filter | None = None) -> AsyncIterator[models.JobSummary]:
        """Yields the jobs that match a filter, newest first, page by page."""
        async for page in self._pages(models.JobPage, "/api/jobs", (which or Filter()).query()):
            for job in page.jobs:
                yield job

    async def cancel(self, job_id: Id) -> None:
        """Cancels a job. If it ends before the command reaches it, it keeps that state."""
        await self._run(self._plan.command(job_id, "cancel"))

    async def retry(self, job_id: Id) -> None:
        """Runs a FAILED or CANCELLED job again."""
        await self._run(self._plan.command(job_id, "retry"))

    async def reschedule(self, job_id: Id, at: datetime) -> None:
        """Moves a waiting job to another instant, which must have a time zone."""
        await self._run(self._plan.command(job_id, "reschedule", {"runAt": at.isoformat()}))

    async def change(self, job_id: Id, change: JobChange) -> None:
        """Changes a job that has not started."""
        await self._run(self._plan.change(job_id, change))

    async def run_again(self, job_id: Id, changes: RunAgainRequest | None = None) -> models.Accepted:
        """Submits a new job with the request of this one, and changes."""
        return await self._run(self._plan.run_again(job_id, changes))

    async def delete(self, job_id: Id) -> None:
        """Deletes a job that has ended."""
        await self._run(self._plan.delete(job_id))

    async def logs(self, job_id: Id, *, attempt: int | None = None, cursor: str | None = None) -> models.LogPage:
        """Returns the last lines of a job's log, oldest first; with the cursor of a page, older lines."""
        return await self._run(self._plan.logs(job_id, attempt, cursor))

    async def send_event(
        self, source: str, event_type: str, data: Any = None, *, event_id: str | None = None, subject: str | None = None
    ) -> models.EventKept:
        """Sends a CloudEvent to the handlers that wait for it, now or for as long as the installation keeps it.

        Events with the same source and id count once; without an id it gets a new one.
        """
        event = {"source": source, "type": event_type, "data": data, "id": event_id or str(uuid.uuid4()), "subject": subject}
        return await self._run(self._plan.send_event(event))

    async def callback(
        self,
        secret: str,
        job_id: Id,
        attempt: int,
        status: Status,
        *,
        output: Any = None,
        error_code: str | None = None,
        message: str | None = None,
        retryable: bool | None = None,
        progress: models.CallbackPercent | None = None,
    ) -> None:
        """Reports the end or the progress of a WAITING attempt, with the secret that its handler passed on."""
        body = {"jobId": str(job_id), "attempt": attempt, "status": status, "output": output, "errorCode": error_code}
        more = {"message": message, "retryable": retryable, "progress": progress and dump(progress)}
        await self._run(self._plan.callback(secret, body | more))

    async def stream(self, job_id: Id | None = None, which: Filter | None = None) -> AsyncIterator[StreamEvent]:
        """Follows one job with its progress and log, or the jobs of a filter, as they change.

        A broken stream is resumed after its last event. It ends when the loop ends, the client is closed or the gateway refuses
        it.
        """
        params, place = _stream_params(job_id, which), StreamPlace()
        while True:
            failure: Exception | None = None
            try:
                async for event in self._connection(params, place):
                    yield event
            except (httpx.TransportError, httpx.StreamError, JobWeaverError) as error:
                failure = error
            if self._closed.is_set():
                raise ClientClosed("the client was closed")
            await self._sleep(place.pause(failure))

    async def _connection(self, params: tuple[tuple[str, str], ...], place: StreamPlace) -> AsyncIterator[StreamEvent]:
        async with self._http.stream("GET", "/api/stream", params=params, headers=place.headers(), timeout=SILENCE) as response:
            if not is_stream(response):
                await response.aread()
                raise refusal(response)
            async for sse in EventSource(response).aiter_sse():
                place.seen(sse.id)
                if event := typed(sse):
                    yield event
