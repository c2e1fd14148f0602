"""Handlers that take many jobs at once."""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from jobweaver import AsyncClient, Attempt, Client, NotRetryable, RetryAfter
from jobweaver.attempt import Attempt as Given
from jobweaver.task import AsyncTask, Task


class Vector(BaseModel):
    size: int


sizes: list[int] = []


def embed(texts: list[str], attempts: list[Attempt]) -> list[Vector | Exception]:
    sizes.append(len(texts))
    for text, attempt in zip(texts, attempts, strict=True):
        attempt.log(text)
    if "all" in texts:
        raise RetryAfter(1, "the API is away")
    outputs = [NotRetryable("it is broken") if text == "broken" else Vector(size=len(text)) for text in texts]
    return outputs[1:] if "short" in texts else outputs


async def embed_async(texts: list[str]) -> list[Vector | Exception]:
    return embed(texts, [_attempt(text) for text in texts])


plain = Client("http://none").batch_task("embed", max_batch=3, max_wait=0.02)(embed)
coroutine = AsyncClient("http://none").batch_task("embed", max_batch=3, max_wait=0.02)(embed_async)


def _attempt(payload: Any) -> Given:
    members: dict[str, Any] = dict.fromkeys(("job_id", "trace_id", "deadline", "owner_id", "callback"))
    return Attempt(attempt=1, job_type="embed", queue="pull", tags=[], payload=payload, **members)


async def _run(task: Task[Any, Any] | AsyncTask[Any, Any], *payloads: str) -> list[Any]:
    handler = task.handler
    ran = await asyncio.gather(*(handler(_attempt(each)) for each in payloads), return_exceptions=True)
    return [str(each) if isinstance(each, Exception) else each for each in ran]


@pytest.mark.parametrize("task", [plain, coroutine])
def test_a_batch_handler_takes_many_jobs_and_each_ends_alone(task: Task[str, Vector]) -> None:
    asyncio.run(_take_many(task))


async def _take_many(task: Task[str, Vector]) -> None:
    sizes.clear()
    assert await _run(task, "a", "broken", "ccc") == [{"size": 1}, "it is broken", {"size": 3}]
    assert await _run(task, "a") == [{"size": 1}]
    assert await _run(task, "all", "b") == ["the API is away", "the API is away"]
    assert await _run(task, "short", "b") == [{"size": 1}, "the batch handler has returned no result for the job"]
    assert sizes == [3, 1, 2, 2]
    sizes.clear()
    await _run(task, "a", "b", "c", "d")
    assert sizes == [3, 1]


def test_a_batch_task_knows_the_types_of_its_elements() -> None:
    assert plain.payload_type is str
    assert plain.output_type is Vector
    assert plain.definition["outputSchema"]["title"] == "Vector"
    with pytest.raises(ValueError, match="max_batch"):
        Client("http://none").batch_task("embed", max_batch=0)


def test_a_cancelled_attempt_is_kept_until_its_batch_ends() -> None:
    asyncio.run(_cancel_one())


def test_an_attempt_that_is_cancelled_before_its_batch_begins_is_not_in_it() -> None:
    asyncio.run(_cancel_early())


async def _cancel_one() -> None:
    began = asyncio.Event()

    @AsyncClient("http://none").batch_task("slow", max_batch=2)
    async def slow(numbers: list[int]) -> list[int]:
        began.set()
        await asyncio.sleep(0.01)
        return numbers

    handler = slow.handler
    first, second = (asyncio.create_task(handler(_attempt(n))) for n in (1, 2))
    await began.wait()
    second.cancel()
    await asyncio.sleep(0)
    assert not second.done()
    assert await first == 1
    assert await second == 2


async def _cancel_early() -> None:
    @AsyncClient("http://none").batch_task("early", max_batch=2)
    async def early(numbers: list[int]) -> list[int]:
        return numbers

    first = asyncio.create_task(early.handler(_attempt(1)))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    others = [asyncio.create_task(early.handler(_attempt(n))) for n in (2, 3)]
    assert await asyncio.gather(*others) == [2, 3]
