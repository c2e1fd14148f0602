"""Flows that are written as code."""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from ._steps import FlowJobRequest, FlowRequest
from .models import MadeFlow

if TYPE_CHECKING:
    from .client import AsyncClient, Client
    from .task import AsyncTask, Task

    AnyTask = Task[Any, "R"] | AsyncTask[Any, "R"]

R = TypeVar("R")
C = TypeVar("C")
T = TypeVar("T")

NOT_OF_A_FLOW = {"unique", "debounce"}  # members of a request


class Ref:
    """Stands for a value that is known when the job starts. Its attributes and items stand for the parts of the value."""

    __slots__ = ("_at", "_type")

    def __init__(self, at: dict[str, Any], of: Any) -> None:
        self._at, self._type = at, of

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        fields = _fields(self._type)
        if fields is None:
            return self._part(f".{name}", Any)
        if name not in fields:
            raise AttributeError(f"the output {self._at} has no {name!r}; it has {', '.join(fields)}")
        alias, of, _ = fields[name]
        return self._part(_member(alias), of)

    def __getitem__(self, key: int | str) -> Any:
        if isinstance(key, str):
            return self._part(_member(key), Any)
        return self._part(f"[{key}]", _element(self._type))

    def __iter__(self) -> Any:
        raise TypeError("an output is not known yet: make a job for each element by each()")

    def _part(self, path: str, of: Any) -> Ref:
        return Ref(self._at | {"path": self._at.get("path", "$") + path}, of)


class FlowJob(Generic[R]):
    """A job of a flow. In `after` of another job it has to complete; `failed` and `ended` are the other conditions."""

    def __init__(self, name: str, output: Any) -> None:
        self.name = name
        self.output = cast(R, Ref({"$output": name}, output))
        """Stands for the output in the payload of another job."""
        self.failed: dict[str, str] = {"name": name, "on": "failed"}
        self.ended: dict[str, str] = {"name": name, "on": "ended"}


After = Sequence[FlowJob[Any] | dict[str, str]]


class _FlowBuilder:
    def __init__(self, **about: Any) -> None:
        self._about, self._jobs = about, cast(dict[str, FlowJobRequest], {})

    def add(self, name: str, task: AnyTask[R], payload: Any, *, after: After = (), **members: Any) -> FlowJob[R]:
        """Adds a job of a task. The payload is a value of its type, or a dict with outputs of other jobs in it.

        after has the jobs that it waits for besides these, members what else is in the request. The defaults `unique` and
        `debounce` of the task do not apply within a flow.
        """
        self._add(name, task, payload, after, members, [])
        return FlowJob(name, task.output_type)

    def each(
        self,
        name: str,
        task: AnyTask[R],
        array: Sequence[T],
        payload: Callable[[T, int], Any],
        *,
        after: After = (),
        **members: Any,
    ) -> FlowJob[list[R | None]]:
        """Adds a job of a task for each element of an array in an output. Their output is the array of theirs."""
        at: dict[str, Any] = array._at if isinstance(array, Ref) else {}
        if "$output" not in at:
            raise TypeError(f"the array of {name} must be in the output of a job")
        made = payload(cast(T, Ref({"$item": "value"}, _element(array._type))), cast(int, Ref({"$item": "index"}, int)))  # type: ignore[attr-defined]
        self._add(name, task, made, after, members | {"for_each": at}, [at["$output"]])
        return FlowJob(name, list[task.output_type | None])  # type: ignore[name-defined]

    def request(self) -> FlowRequest:
        """The request, as flows.create takes it."""
        return FlowRequest(**self._about, jobs=dict(self._jobs))

    def _add(self, name: str, task: AnyTask[Any], given: Any, after: After, members: dict[str, Any], needs: list[str]) -> None:
        if name in self._jobs:
            raise TypeError(f"the flow has two jobs {name}")
        if isinstance(given, Ref):
            payload = _resolved(given, needs)
        elif isinstance(given, Mapping):
            payload = _resolved(_named(name, given, task.payload_type), needs)
        else:
            payload = task.dumped(given)
        conditions = [each.name if isinstance(each, FlowJob) else each for each in after]
        named = {each if isinstance(each, str) else each["name"] for each in conditions}
        for each in (*needs, *named):
            if each not in self._jobs:
                raise TypeError(f"{name} comes after {each}, which is not a job of this flow")
        order = [each for each in dict.fromkeys(needs) if each not in named] + conditions
        own = {key: value for key, value in (task.defaults | members).items() if key not in NOT_OF_A_FLOW}
        if order:
            own["after"] = order
        self._jobs[name] = FlowJobRequest(**own, job_type=task.job_type, payload=payload)


class FlowBuilder(_FlowBuilder):
    """A flow that is written as code: each job is added after those that it needs. Client.flow begins one."""

    def __init__(self, client: Client, **about: Any) -> None:
        super().__init__(**about)
        self._client = client

    def submit(self) -> MadeFlow:
        """Submits the flow. If it has no idempotency_key it gets one, so that a repeated request makes no second flow."""
        return self._client.flows.create(self.request())


class AsyncFlowBuilder(_FlowBuilder):
    """FlowBuilder of an AsyncClient."""

    def __init__(self, client: AsyncClient, **about: Any) -> None:
        super().__init__(**about)
        self._client = client

    async def submit(self) -> MadeFlow:
        return await self._client.flows.create(self.request())


def or_else(ref: T, value: T) -> T:
    """The reference, or the value where the job has not completed or its output has no such part."""
    if not isinstance(ref, Ref):
        raise TypeError("only an output may be missing")
    return cast(T, Ref(ref._at | {"default": value}, ref._type))


def _resolved(value: Any, needs: list[str]) -> Any:
    """The payload as the API takes it. The names of the jobs to whose outputs it refers are added to needs."""
    if isinstance(value, Ref):
        if "$output" in value._at:
            needs.append(value._at["$output"])
        return value._at
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    if isinstance(value, Mapping):
        return {key: _resolved(each, needs) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_resolved(each, needs) for each in value]
    return value


def _named(name: str, given: Mapping[str, Any], of: Any) -> Mapping[str, Any]:
    """The payload by the names of the API. It must have what the type requires, and nothing that the type lacks."""
    fields = _fields(of)
    if fields is None:
        return given
    aliases = {field: alias for field, (alias, _, _) in fields.items()}
    made = {aliases.get(key, key): value for key, value in given.items()}
    unknown = made.keys() - aliases.values()
    missing = {alias for alias, _, required in fields.values() if required} - made.keys()
    if unknown or missing:
        wrong = [f"has no {each!r}" for each in sorted(unknown)] + [f"needs {each!r}" for each in sorted(missing)]
        raise TypeError(f"the payload of {name} {' and '.join(wrong)}")
    return made


def _fields(of: Any) -> dict[str, tuple[str, Any, bool]] | None:
    """The members of a model or a dataclass: their names in JSON, their types, and whether they are required."""
    of = _plain(of)
    if not isinstance(of, type):
        return None
    if issubclass(of, BaseModel):
        return {
            name: (field.serialization_alias or field.alias or name, field.annotation, field.is_required())
            for name, field in of.model_fields.items()
        }
    if dataclasses.is_dataclass(of):
        hints, missing = get_type_hints(of), dataclasses.MISSING
        return {
            each.name: (each.name, hints[each.name], each.default is missing and each.default_factory is missing)
            for each in dataclasses.fields(of)
        }
    return None


def _element(of: Any) -> Any:
    of = _plain(of)
    return (get_args(of) or (Any,))[0] if get_origin(of) in (list, tuple, Sequence) else Any


def _plain(of: Any) -> Any:
    """The type without None."""
    if get_origin(of) in (Union, types.UnionType):
        some = [each for each in get_args(of) if each is not type(None)]
        return some[0] if len(some) == 1 else Any
    return of


def _member(name: str) -> str:
    if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        return f".{name}"
    return "['" + re.sub(r"(['\\])", r"\\\1", name) + "']"
