"""A gateway without a network, and helpers that use both clients in the same way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from jobweaver import AsyncClient, Client

Answer = Callable[[], httpx.Response | Exception]


class Gateway:
    """Returns the given responses in turn, the last one repeatedly, and records the requests with their times."""

    def __init__(self, *answers: Answer) -> None:
        self.answers, self.asked, self.at = answers, [], []
        self.begin = time.monotonic()
        self.transport = httpx.MockTransport(self.answer)

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        self.at.append(time.monotonic() - self.begin)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]()
        if isinstance(answer, Exception):
            raise answer
        return answer


def json(status: int, body: Any, **headers: str) -> Answer:
    return lambda: httpx.Response(status, json=body, headers={k.replace("_", "-"): v for k, v in headers.items()})


def breaks(kind: type[httpx.TransportError] = httpx.ReadError) -> Answer:
    return lambda: kind("the connection")


ID = "019aa5d0-8f5e-7cc0-8000-000000000001"
AT = "2026-11-22T08:00:00Z"
ACCEPTED = {"jobId": ID, "traceId": ID, "status": "PENDING"}


def job(status: str, **more: Any) -> dict[str, Any]:
    """A job as the API shows it."""
    texts = ["ownerId", "runAt", "nextRunAt", "startedAt", "finishedAt", "expiresAt", "callbackDeadlineAt", "cancelRequestedAt"]
    objects = ["progress", "output", "lastError", "orderingKey", "schedule", "payload", "callbackUrl", "onDependencyFailure"]
    nothing = dict.fromkeys([*texts, *objects, "runAgainOf", "runAgainAs", "parentId"])
    numbers = dict.fromkeys(["priority", "attempt", "retryCount", "maxRetryCount", "version"], 0)
    lists: dict[str, Any] = {name: [] for name in ["tags", "blockedBy", "after", "history", "attempts", "logs", "waits", "steps"]}
    own = {"jobId": ID, "jobType": "A", "queue": "default", "status": status, "traceId": ID, "createdAt": AT, "updatedAt": AT}
    return nothing | numbers | lists | own | more


class Both:
    """Calls a method of Client, or of AsyncClient."""

    def __init__(self, asynchronous: bool) -> None:
        self.asynchronous = asynchronous

    def calls(self, gateway: Gateway, *calls: Callable[[Any], Any], **options: Any) -> list[Any]:
        """Returns the results of calls, or of a generator the items up to the first that `until` accepts."""
        options.setdefault("transport", gateway.transport)
        if not self.asynchronous:
            with Client("http://gateway/", "the key", **options) as client:
                return [call(client) for call in calls]

        async def run() -> list[Any]:
            async with AsyncClient("http://gateway/", "the key", **options) as client:
                return [await call(client) for call in calls]

        return asyncio.run(run())

    def all(self, gateway: Gateway, call: Callable[[Any], Any], until: Callable[[Any], bool] = lambda _: False) -> list[Any]:
        seen: list[Any] = []
        if not self.asynchronous:
            with Client("http://gateway/", "the key", transport=gateway.transport) as client:
                for each in call(client):
                    seen.append(each)
                    if until(each):
                        break
            return seen

        async def run() -> None:
            async with AsyncClient("http://gateway/", "the key", transport=gateway.transport) as client:
                async for each in call(client):
                    seen.append(each)
                    if until(each):
                        break

        asyncio.run(run())
        return seen


@pytest.fixture(params=["sync", "asyncio"])
def both(request: pytest.FixtureRequest) -> Both:
    return Both(request.param == "asyncio")
