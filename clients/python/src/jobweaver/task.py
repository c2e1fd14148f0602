"""Tasks: job types that are defined in code."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import UnionType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints, overload

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from ._batch import Batches
from ._steps import JobRequest
from .attempt import Attempt, NotRetryable
from .errors import JobEnded
from .models import Accepted, BatchAccepted, BatchRefused, Job

if TYPE_CHECKING:
    from uuid import UUID

    from .client import AsyncClient, Client  # noqa: F401


P = TypeVar("P")
R = TypeVar("R")
C = TypeVar("C")


@dataclass(frozen=True)
class TaskSchedule(Generic[P]):
    """A schedule beside the function of a task. more has further members of a schedule by their names in the API, as overlap."""

    name: str
    """Different for each schedule of the owner."""
    cron: str
    """Five fields, six with seconds, or such as @every 90s."""
    payload: P
    time_zone: str = "UTC"
    more: dict[str, Any] = field(default_factory=dict)


class _Task(Generic[C, P, R]):
    """A job type that is defined in code: what it takes and returns, how its jobs run, and the function that runs them.

    defaults are members of a JobRequest, such as queue, max_retry_count or timeout_ms. What they leave out, the installation
    decides; the queue is `pull`, that of pull workers. payload and output are types that pydantic knows: models, dataclasses,
    TypedDicts and builtins. A worker that starts creates and changes the schedules, and deletes those that it made and that are not
    here any more. Without a function other workers run the task, and this process only submits it.
    """

    def __init__(
        self,
        client: C,
        job_type: str,
        payload: type[P],
        output: type[R],
        function: Callable[..., Any] | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        schedules: Sequence[TaskSchedule[P]] = (),
        batch: tuple[int, float] | None = None,
        **defaults: Any,
    ) -> None:
        self._client, self.job_type, self.function, self.title = client, job_type, function, title
        self.description = description or (inspect.getdoc(function) if function else None)
        self.payload_type, self.output_type, self._schedules = payload, output, schedules
        self._payload: TypeAdapter[P] = TypeAdapter(payload)
        self._output: TypeAdapter[R] = TypeAdapter(output)
        self.defaults: dict[str, Any] = {"queue": "pull"} | defaults
        self._takes_attempt = function is not None and len(inspect.signature(function).parameters) > 1
        self._batch = batch
        JobRequest(job_type=job_type, payload=None, **self.defaults)  # raises for a member that there is not

    def __call__(self, *args: Any) -> Any:
        """Calls the function here, without a job."""
        if self.function is None:
            raise TypeError(f"the task {self.job_type} has no function")
        return self.function(*args)

    def request(self, payload: P, **members: Any) -> JobRequest:
        """The request for a job of the task, as batches and schedules take it."""
        return JobRequest(**{**self.defaults, **members, "job_type": self.job_type, "payload": self.dumped(payload)})

    def dumped(self, payload: P) -> Any:
        """The payload as it is sent."""
        return self._payload.dump_python(payload, mode="json", by_alias=True)

    def output_of(self, job: Job) -> R:
        """The output of a job of the task. Raises JobEnded if the job has ended otherwise than COMPLETED."""
        if job.status != "COMPLETED":
            raise JobEnded(job)
        return self.output_from(job.output)

    def output_from(self, output: Any) -> R:
        """The output of a job, from its JSON value."""
        return self._output.validate_python(output)

    @property
    def definition(self) -> dict[str, Any]:
        """What a worker sends to the gateway when it starts."""
        about = {"title": self.title, "description": self.description}
        return about | {"schema": _schema(self._payload, "validation"), "outputSchema": _schema(self._output, "serialization")}

    @property
    def schedules(self) -> list[dict[str, Any]]:
        """The schedules, as a worker sends them when it starts."""
        made = []
        for each in self._schedules:
            job = self.request(each.payload).model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"debounce"})
            made.append({"name": each.name, "cron": each.cron, "timeZone": each.time_zone, "job": job} | each.more)
        return made

    @property
    def handler(self) -> Callable[[Attempt], Any]:
        """Runs an attempt as a Worker does."""
        function = self.function
        if function is None:
            raise TypeError(f"the task {self.job_type} has no function")
        if self._batch is not None:
            batches = Batches(function, *self._batch, self._takes_attempt)

            async def gather(attempt: Attempt) -> Any:
                return self._output_dumped(await batches.add(self._arguments(attempt)[0], attempt))

            return gather
        if inspect.iscoroutinefunction(function):

            async def handle(attempt: Attempt) -> Any:
                return self._output_dumped(await function(*self._arguments(attempt)))

            return handle
        return lambda attempt: self._output_dumped(function(*self._arguments(attempt)))

    def _arguments(self, attempt: Attempt) -> tuple[Any, ...]:
        try:
            payload = self._payload.validate_python(attempt.payload)
        except ValidationError as error:
            wrong = "; ".join(f"{_path(each['loc'])}: {each['msg']}" for each in error.errors())
            raise NotRetryable(wrong, error_code="WORKER.INVALID_PAYLOAD") from error
        return (payload, attempt) if self._takes_attempt else (payload,)

    def _output_dumped(self, output: Any) -> Any:
        return self._output.dump_python(output, mode="json", by_alias=True, warnings=False)


class Task(_Task["Client", P, R]):
    """A task of a Client."""

    def submit(self, payload: P, **members: Any) -> Accepted:
        """Submits a job. If it has no idempotency_key it gets one, so that a repeated request makes no second job."""
        return self._client.submit(self.request(payload, **members))

    def submit_all(self, payloads: Iterable[P], **members: Any) -> list[BatchAccepted | BatchRefused]:
        """Submits a job for each payload, 1,000 in a request, and returns a result for each, in their order."""
        return self._client.submit_batch(self.request(each, **members) for each in payloads)

    def run(self, payload: P, *, timeout: float | None = None, **members: Any) -> R:
        """Submits a job and returns its output once it is COMPLETED. Raises JobEnded if it ends otherwise."""
        return self.output_of(self._client.run(self.request(payload, **members), timeout=timeout))

    def wait(self, job_id: UUID | str, *, timeout: float | None = None) -> R:
        """Waits for a job of the task and returns its output. Raises JobEnded if it ends otherwise than COMPLETED."""
        return self.output_of(self._client.wait(job_id, timeout=timeout))


class AsyncTask(_Task["AsyncClient", P, R]):
    """A task of an AsyncClient, with the same methods."""

    async def submit(self, payload: P, **members: Any) -> Accepted:
        return await self._client.submit(self.request(payload, **members))

    async def submit_all(self, payloads: Iterable[P], **members: Any) -> Sequence[BatchAccepted | BatchRefused]:
        return await self._client.submit_batch([self.request(each, **members) for each in payloads])

    async def run(self, payload: P, *, timeout: float | None = None, **members: Any) -> R:
        return self.output_of(await self._client.run(self.request(payload, **members), timeout=timeout))

    async def wait(self, job_id: UUID | str, *, timeout: float | None = None) -> R:
        return self.output_of(await self._client.wait(job_id, timeout=timeout))


class TaskDecorator(Protocol):
    """Makes a Task of a function that takes the payload, or the payload and the Attempt. Its annotations give the types."""

    @overload
    def __call__(self, function: Callable[[P, Attempt], Awaitable[R]]) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[[P], Awaitable[R]]) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[[P, Attempt], R]) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[[P], R]) -> Task[P, R]: ...


class BatchTaskDecorator(Protocol):
    """Makes a Task of a function that takes a list of payloads, or of payloads and of Attempts, and returns a list of outputs."""

    @overload
    def __call__(self, function: Callable[[list[P], list[Attempt]], Awaitable[Sequence[R | Exception]]]) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[[list[P]], Awaitable[Sequence[R | Exception]]]) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[[list[P], list[Attempt]], Sequence[R | Exception]]) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[[list[P]], Sequence[R | Exception]]) -> Task[P, R]: ...


class AsyncBatchTaskDecorator(Protocol):
    """Makes an AsyncTask in the same way."""

    @overload
    def __call__(self, function: Callable[[list[P], list[Attempt]], Awaitable[Sequence[R | Exception]]]) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[[list[P]], Awaitable[Sequence[R | Exception]]]) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[[list[P], list[Attempt]], Sequence[R | Exception]]) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[[list[P]], Sequence[R | Exception]]) -> AsyncTask[P, R]: ...


class AsyncTaskDecorator(Protocol):
    """Makes an AsyncTask in the same way."""

    @overload
    def __call__(self, function: Callable[[P, Attempt], Awaitable[R]]) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[[P], Awaitable[R]]) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[[P, Attempt], R]) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[[P], R]) -> AsyncTask[P, R]: ...


def decorator(kind: Callable[..., Any], client: Any, job_type: str, options: dict[str, Any]) -> Any:
    """Makes the decorator of Client.task and AsyncClient.task."""

    def decorate(function: Callable[..., Any]) -> Any:
        hints = get_type_hints(function)
        first = next(iter(inspect.signature(function).parameters), None)
        if first is None:
            raise TypeError(f"the function of the task {job_type} takes no payload")
        return kind(client, job_type, hints.get(first, Any), hints.get("return", Any), function, **options)

    return decorate


def batch_decorator(
    kind: Callable[..., Any], client: Any, job_type: str, max_batch: int, max_wait: float, options: dict[str, Any]
) -> Any:
    """Makes the decorator of Client.batch_task and AsyncClient.batch_task."""
    if max_batch < 1 or max_wait < 0:
        raise ValueError("max_batch must be at least 1, and max_wait not negative")

    def decorate(function: Callable[..., Any]) -> Any:
        hints = get_type_hints(function)
        first = next(iter(inspect.signature(function).parameters), None)
        if first is None:
            raise TypeError(f"the function of the task {job_type} takes no payloads")
        payload, output = _element(hints.get(first)), _element(hints.get("return"))
        return kind(client, job_type, payload, output, function, batch=(max_batch, max_wait), **options)

    return decorate


def _element(of: Any) -> Any:
    """The type of the elements of a list, without exceptions."""
    element = (get_args(of) or (Any,))[0]
    options = [each for each in get_args(element) if not (isinstance(each, type) and issubclass(each, BaseException))]
    if get_origin(element) not in (Union, UnionType) or not options:
        return element
    return Union[tuple(options)]  # noqa: UP007


def _schema(adapter: TypeAdapter[Any], mode: Any) -> dict[str, Any] | None:
    try:
        return adapter.json_schema(mode=mode)
    except PydanticUserError:
        return None  # the type has no JSON Schema


def _path(location: tuple[int | str, ...]) -> str:
    return "payload" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
